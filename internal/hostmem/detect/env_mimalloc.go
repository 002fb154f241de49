package detect

import (
	"fmt"
	"slices"
	"strings"
)

// ignoredByMimalloc checks name and value.
func ignoredByMimalloc(name, value string, used *object) []string {
	if !mimallocKnows(used, name) {
		return []string{"this mimalloc does not have the option"}
	}
	if option := strings.ToLower(name[len("MIMALLOC_"):]); !mimallocTakes(option, value) {
		return []string{fmt.Sprintf("mimalloc does not take %q: it takes a whole number, or a word such as on or off", value)}
	}
	return nil
}

// mimallocKnows looks for the option's name. Linkers keep a text that is the
// end of another only once, so what stands before it does not matter, but for
// options that are kept by name and do nothing.
func mimallocKnows(o *object, name string) bool {
	const gone = "deprecated_"
	option := strings.ToLower(name[len("MIMALLOC_"):])
	found := false
	o.around(option+"\x00", len(gone), func(w window) bool {
		found = !strings.HasSuffix(string(w.before), gone)
		return found
	})
	return found
}

// mimallocTakes reports whether a value is accepted. One rule holds for all
// options, but some, more with each version, are sizes with a unit.
func mimallocTakes(option, value string) bool {
	value = strings.ToUpper(value)
	// Most versions look for the value in these texts, so that parts of a word
	// are taken too.
	if strings.Contains("1;TRUE;YES;ON", value) || strings.Contains("0;FALSE;NO;OFF", value) {
		return true
	}
	n := leadingNumber(value, 10)
	if slices.Contains([]string{"reserve_os_memory", "arena_reserve", "minimal_purge_size", "arena_max_object_size"}, option) {
		if n.rest != "" && strings.Contains("KMGT", n.rest[:1]) {
			n.rest = n.rest[1:]
		}
		if n.rest == "IB" || n.rest == "B" {
			n.rest = ""
		}
	}
	return n.rest == ""
}
