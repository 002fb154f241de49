package settings

import (
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// laterKeys exist only in versions after 2.11 (spec 15). They are not modelled.
var laterKeys = map[string]pytorch.Version{
	"throw_on_cudamalloc_oom":              pytorch.Of(2, 12),
	"pinned_free_catch_all":                pytorch.Of(2, 12),
	"pinned_max_round_threshold_mb":        pytorch.Of(2, 13),
	"pinned_max_cached_size_mb":            pytorch.Of(2, 13),
	"expandable_segments_reserve":          pytorch.Of(2, 13),
	"expandable_segments_reserve_by_class": pytorch.Of(2, 13),
}

// LaterKeys are the names of settings that exist only in versions of PyTorch
// after 2.11 (spec 15), in alphabetical order.
func LaterKeys() []string { return slices.Sorted(maps.Keys(laterKeys)) }

// Since returns the release of PyTorch that introduced a key; 0 if all releases
// from 2.0 on know it, or none.
func Since(key string) pytorch.Version {
	if o := lookup(key); o != nil {
		return o.since
	}
	return laterKeys[key]
}

// Keys returns the keys that [Settings.String] writes, in its order.
func (s Settings) Keys() []string {
	var keys []string
	for i := range options {
		if options[i].format(s) != "" {
			keys = append(keys, options[i].key)
		}
	}
	return keys
}

// ParseKnown reads a text as [Parse] does, but leaves out keys that it does not
// know, with their values: those of other releases, and misspelt ones. It returns
// their names.
func ParseKnown(conf string) (s Settings, skipped []string, err error) {
	p := parser{settings: Default(), tokens: tokenize(conf), skips: true}
	err = p.parse()
	return p.settings, p.skipped, err
}

// skip notes the key at token i, which no option bears, and returns where the next
// one stands.
func (p *parser) skip(i int) int {
	p.skipped = append(p.skipped, p.tokens[i])
	if i+1 < len(p.tokens) && p.tokens[i+1] == "," { // it has no value
		return i + 2
	}
	return p.valueEnd(i+2) + 1
}
