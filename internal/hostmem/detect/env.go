package detect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The names of each allocator's variables are judged by the allocator itself: one
// that is not among the texts of the object is not read by it. That holds for
// every version without a list of them. Values are judged by the rules of each,
// as its source has them; what is not known to be wrong is not called so.

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
		return ignoredByJemalloc(name, value, f, used)
	case Tcmalloc:
		return ignoredByTcmalloc(name, value, f, used)
	case Mimalloc:
		return ignoredByMimalloc(name, value, used)
	}
	return nil
}

func familyText(family string) string {
	if family == Go {
		return "the Go runtime"
	}
	return family
}

// olderThan reports whether a version is below major.minor; an unknown one is not.
func olderThan(version *string, major, minor int) bool {
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

// hasName reports whether the object contains the whole name of a variable.
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

func (t *target) ignoredByPython() []string {
	if !slices.ContainsFunc(t.objects, isPython) {
		return []string{"the program is not Python"}
	}
	return nil
}

// Tunes names the allocator that an environment variable is read by; empty if
// none is.
func Tunes(name, value string) string {
	switch family := familyOf(name, value); family {
	case familyPython, familyPreload, Go:
		return ""
	default:
		return family
	}
}
