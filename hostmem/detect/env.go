package detect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The variables of each allocator are judged by the allocator itself: a name
// that is not among the texts of the object is not read by it. That holds for
// every version without a list of them.

// variables sorts out what the environment says about allocators and which of
// it has no effect.
func (t *target) variables(f Finding, used *object, others []Finding) ([]Variable, []Ignored) {
	env, ignored := []Variable{}, []Ignored{}
	for _, entry := range t.env {
		name, value, _ := strings.Cut(entry, "=")
		family := familyOf(name, value)
		if family == "" {
			continue
		}
		env = append(env, Variable{name, value})
		if family != f.Allocator && slices.ContainsFunc(others, func(o Finding) bool { return o.Allocator == family && o.How != loadedOnly }) {
			continue // the one that is called by its own names may read it
		}
		for _, why := range t.ignored(family, name, value, f, used) {
			ignored = append(ignored, Ignored{name, value, why})
		}
	}
	slices.SortStableFunc(env, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(ignored, func(a, b Ignored) int { return strings.Compare(a.Name, b.Name) })
	return env, ignored
}

// joinTunables undoes what the loader of glibc does to its own variable: it
// cuts it into words where it lies.
func joinTunables(env []string) []string {
	var joined []string
	for _, entry := range env {
		if n := len(joined); n > 0 && strings.HasPrefix(entry, "glibc.") && strings.HasPrefix(joined[n-1], "GLIBC_TUNABLES=") {
			joined[n-1] += ":" + entry
			continue
		}
		joined = append(joined, entry)
	}
	return joined
}

// Families of variables that are no allocator's.
const (
	familyPython  = "Python"
	familyPreload = "loader"
)

// familyOf says whose variable it is; empty if it has nothing to do with
// allocators.
func familyOf(name, value string) string {
	upper := strings.ToUpper(name)
	switch {
	case strings.HasSuffix(name, "MALLOC_CONF"):
		return Jemalloc
	case name == "GLIBC_TUNABLES" && strings.Contains(value, "glibc.malloc."):
		return Glibc
	case strings.HasPrefix(name, "MALLOC_"):
		return Glibc
	case strings.HasPrefix(name, "TCMALLOC_"):
		return Tcmalloc
	case strings.HasPrefix(upper, "MIMALLOC_"):
		return Mimalloc
	case name == "GOGC", name == "GOMEMLIMIT":
		return Go
	case name == "PYTHONMALLOC", name == "PYTHONMALLOCSTATS":
		return familyPython
	case name == "LD_PRELOAD":
		return familyPreload
	}
	return ""
}

// ignored gives the reasons why a variable, or parts of it, have no effect.
func (t *target) ignored(family, name, value string, f Finding, used *object) []string {
	switch family {
	case familyPreload:
		return t.ignoredPreloads(value, f, used)
	case familyPython:
		return t.ignoredByPython()
	}
	if f.Allocator == Unknown {
		return nil // who knows what it reads
	}
	if f.Allocator != family {
		return []string{fmt.Sprintf("it is for %s; malloc here is that of %s", familyText(family), familyText(f.Allocator))}
	}
	switch family {
	case Glibc:
		return t.ignoredByGlibc(name, value, f, used)
	case Jemalloc:
		return ignoredByJemalloc(name, value, used)
	case Tcmalloc:
		if !used.hasName(name) {
			return []string{"this tcmalloc does not have the name"}
		}
	case Mimalloc:
		if !mimallocKnows(used, name) {
			return []string{"this mimalloc does not have the option"}
		}
	}
	return nil
}

func familyText(family string) string {
	if family == Go {
		return "the Go runtime"
	}
	return family
}

// glibc reads its variables in the loader, if there is one.
func (t *target) ignoredByGlibc(name, value string, f Finding, used *object) []string {
	readers := []*object{used}
	if t.program != nil && t.program.interp != "" {
		if o := t.atPath(t.program.interp); o != nil {
			readers = append(readers, o)
		}
	}
	knows := func(name string) bool {
		return slices.ContainsFunc(readers, func(o *object) bool { return o.hasName(name) })
	}
	if before(f.Version, 2, 26) {
		// Before there were tunables the names were not kept whole.
		knows = func(name string) bool { return slices.Contains(glibcNames, name) }
	}
	if name == "GLIBC_TUNABLES" {
		var why []string
		for pair := range strings.SplitSeq(value, ":") {
			key, _, _ := strings.Cut(pair, "=")
			if strings.HasPrefix(key, "glibc.malloc.") && !knows(key) {
				why = append(why, "this glibc does not have "+key)
			}
		}
		return why
	}
	switch {
	case name == "MALLOC_CHECK_" && !before(f.Version, 2, 34) && t.named("libc_malloc_debug.so.0") == nil:
		return []string{"it only has an effect with libc_malloc_debug.so.0 preloaded"}
	case knows(name):
		return nil
	}
	// The likeliest mistake: some names end with an underscore, some do not.
	other, cut := strings.CutSuffix(name, "_")
	if !cut {
		other = name + "_"
	}
	if knows(other) {
		return []string{"glibc's name is " + other}
	}
	return []string{"this glibc does not have the name"}
}

var glibcNames = []string{
	"MALLOC_ARENA_MAX", "MALLOC_ARENA_TEST", "MALLOC_CHECK_", "MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_",
	"MALLOC_PERTURB_", "MALLOC_TOP_PAD_", "MALLOC_TRIM_THRESHOLD_",
}

// before compares a version; one that is not known is new.
func before(version *string, major, minor int) bool {
	if version == nil {
		return false
	}
	parts := strings.Split(*version, ".")
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a < major || a == major && b < minor)
}

// ignoredByJemalloc checks the name, which depends on how it was built, and
// each option of the list.
func ignoredByJemalloc(name, value string, used *object) []string {
	names := confNames(used)
	if len(names) > 0 && !slices.Contains(names, name) {
		return []string{"this jemalloc reads " + strings.Join(names, " or ")}
	}
	var why []string
	for pair := range strings.SplitSeq(value, ",") {
		key, _, _ := strings.Cut(pair, ":")
		if key = strings.TrimSpace(key); key != "" && !used.has(key+"\x00") {
			why = append(why, fmt.Sprintf("this jemalloc does not have the option %s", key))
		}
	}
	return why
}

// confNames are the names of jemalloc's variable in an object: MALLOC_CONF with
// the prefix it was built with.
func confNames(o *object) []string {
	var names []string
	o.around("MALLOC_CONF\x00", 32, func(w window) bool {
		i := len(w.before)
		for i > 0 && isNameByte(w.before[i-1]) {
			i--
		}
		if name := string(w.before[i:]) + "MALLOC_CONF"; !slices.Contains(names, name) {
			names = append(names, name)
		}
		return false
	})
	return names
}

// hasName tells whether the object has a variable's name among its texts, whole.
func (o *object) hasName(name string) bool {
	found := false
	o.around(name+"\x00", 1, func(w window) bool {
		found = len(w.before) == 0 || !isNameByte(w.before[len(w.before)-1])
		return found
	})
	return found
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
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

// ignoredPreloads explains each object of LD_PRELOAD that is not loaded or
// whose malloc is not the one in use.
func (t *target) ignoredPreloads(value string, f Finding, used *object) []string {
	names := preloadNames(value)
	if t.program != nil && t.static() {
		if len(names) == 0 {
			return nil
		}
		return []string{"the program is static: no loader reads it"}
	}
	var why []string
	for _, name := range names {
		o := t.named(name)
		switch {
		case o == nil:
			why = append(why, name+" is not loaded")
		case o != used && o.exports("malloc"):
			reason := "malloc is that of " + f.Object
			if f.Allocator == Go {
				reason = "Go does not use it"
			}
			why = append(why, fmt.Sprintf("%s is loaded, but %s", name, reason))
		}
	}
	return why
}

func (t *target) ignoredByPython() []string {
	if !slices.ContainsFunc(t.objects, isPython) {
		return []string{"the program is not Python"}
	}
	return nil
}
