package detect

import (
	"fmt"
	"slices"
	"strings"
)

// glibcVariables judges the variables of glibc. It reads them in the loader, if
// there is one.
type glibcVariables struct {
	readers []*object
	version *string
}

func (t *target) ignoredByGlibc(name, value string, f Finding, used *object) []string {
	g := glibcVariables{readers: []*object{used}, version: f.Version}
	if t.program != nil && t.program.interp != "" {
		if o := t.atPath(t.program.interp); o != nil {
			g.readers = append(g.readers, o)
		}
	}
	if name == "GLIBC_TUNABLES" {
		return g.tunables(value)
	}
	switch {
	case name == "MALLOC_CHECK_" && !olderThan(f.Version, 2, 34) && t.named("libc_malloc_debug.so.0") == nil:
		return []string{"it only has an effect with libc_malloc_debug.so.0 preloaded"}
	case g.knows(name):
		tunable := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "MALLOC_"), "_"))
		if why := g.refused(tunable, value); why != "" {
			return []string{why}
		}
		return nil
	}
	// The likeliest mistake: some names end with an underscore, some do not.
	other, cut := strings.CutSuffix(name, "_")
	if !cut {
		other = name + "_"
	}
	if g.knows(other) {
		return []string{"glibc's name is " + other}
	}
	return []string{"this glibc does not have the name"}
}

// Before there were tunables, in 2.26, the names were not kept whole.
func (g *glibcVariables) hasTunables() bool { return !olderThan(g.version, 2, 26) }

func (g *glibcVariables) knows(name string) bool {
	if !g.hasTunables() {
		return slices.Contains(glibcNames, name)
	}
	return slices.ContainsFunc(g.readers, func(o *object) bool { return o.hasName(name) })
}

var glibcNames = []string{
	"MALLOC_ARENA_MAX", "MALLOC_ARENA_TEST", "MALLOC_CHECK_", "MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_",
	"MALLOC_PERTURB_", "MALLOC_TOP_PAD_", "MALLOC_TRIM_THRESHOLD_",
}

// says reports whether glibc contains a message. Newer versions refuse what older
// ones accept, and have a message for it. Distributions backport such rules, so
// the version number would not do.
func (g *glibcVariables) says(text string) bool {
	return slices.ContainsFunc(g.readers, func(o *object) bool { return o.has(text) })
}

// tunables judges GLIBC_TUNABLES, "name=value" with colons between.
func (g *glibcVariables) tunables(list string) []string {
	const prefix = "glibc.malloc."
	pairs := strings.Split(list, ":")
	if g.says("ld.so: invalid GLIBC_TUNABLES `") {
		for i, pair := range pairs {
			if n := strings.Count(pair, "="); n > 1 || n == 0 && i == len(pairs)-1 {
				return []string{fmt.Sprintf("glibc cannot read it because of %q, and ignores all of it", pair)}
			}
		}
	}
	var why []string
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		switch {
		case !strings.HasPrefix(name, prefix):
		case !g.knows(name):
			why = append(why, "this glibc does not have "+name)
		case !ok:
			why = append(why, name+" has no value")
		default:
			if reason := g.refused(name[len(prefix):], value); reason != "" {
				why = append(why, name+": "+reason)
			}
		}
	}
	return why
}

// glibcRange is what a tunable takes where that is not any number. Those of
// size_t take a negative number for a huge one.
type glibcRange struct {
	least, most int64 // most 0: no limit
	signed      bool
}

var glibcRanges = map[string]glibcRange{
	"arena_max": {least: 1}, "arena_test": {least: 1},
	"perturb": {most: 255, signed: true}, "check": {most: 3, signed: true},
}

// refused says why a value is not taken, or not as it is written; empty if it
// is.
func (g *glibcVariables) refused(tunable, value string) string {
	if !g.hasTunables() {
		return ""
	}
	n := leadingNumber(value, 0)
	whole := n.rest == ""
	if !whole && g.says("ld.so: invalid GLIBC_TUNABLES value") {
		return fmt.Sprintf("glibc takes a whole number, not %q", value)
	}
	r := glibcRanges[tunable]
	takes := ""
	switch {
	case r.most > 0 && (n.signed() < r.least || n.signed() > r.most):
		takes = fmt.Sprintf("%d to %d", r.least, r.most)
	case !r.signed && !n.negative && n.value < uint64(r.least):
		takes = fmt.Sprintf("%d or more", r.least)
	}
	reads := fmt.Sprint(n.value)
	if n.negative && n.value != 0 {
		reads = "-" + reads
	}
	plain := whole && n.digits
	switch {
	case takes != "" && plain:
		return fmt.Sprintf("glibc takes %s, not %s", takes, value)
	case takes != "":
		return misread("glibc", value, n.rest, reads) + ", and takes " + takes
	case !plain:
		return misread("glibc", value, n.rest, reads)
	}
	return ""
}
