package variant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/hostmem/detect"
)

// Variable is one environment variable.
type Variable = detect.Variable

// entry writes a variable as an environment has it.
func entry(v Variable) string { return v.Name + "=" + v.Value }

// Variant is a malloc and how it is tuned.
type Variant struct {
	Name      string
	Allocator string // as package detect names it
	Library   string // of Libraries; empty: the malloc of the C library
	Trim      bool   // with a thread that calls malloc_trim
	Env       []Variable
	Versions  Versions // of the allocator that understand Env
	What      string   // what is different about it
}

// Versions says for which versions a row holds.
type Versions struct {
	From string   // the first; empty: all
	Not  []string // exactly these do not
	Why  string   // of From and Not
}

// Baseline is the variant that others are compared with.
const Baseline = "glibc"

// table is all there is, in the order of how much they change: a variable, a
// library, a library with variables.
var table = []Variant{
	{
		Name: Baseline, Allocator: "glibc",
		What: "the C library's malloc, as it is",
	},
	{
		Name: "glibc-arena2", Allocator: "glibc",
		Env:      []Variable{{Name: "MALLOC_ARENA_MAX", Value: "2"}},
		Versions: Versions{From: "2.10", Why: "arenas can be limited from then on"},
		What:     "two arenas for all threads, not eight a core",
	},
	{
		Name: "glibc-trim", Allocator: "glibc", Trim: true,
		Versions: Versions{From: "2.8", Why: "malloc_trim gives back whole pages inside the heap from then on"},
		What:     "a thread calls malloc_trim(0) once a second",
	},
	{
		Name: "jemalloc", Allocator: "jemalloc", Library: "jemalloc",
		What: "as shipped: free pages decay within 10 s, but only while the program allocates",
	},
	{
		Name: "jemalloc-bg", Allocator: "jemalloc", Library: "jemalloc",
		Env:      []Variable{{Name: "MALLOC_CONF", Value: "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0"}},
		Versions: Versions{From: "5.0", Why: "background threads came with it"},
		What:     "a background thread gives free pages back within two seconds or so, also when the program is idle",
	},
	{
		Name: "tcmalloc", Allocator: "tcmalloc", Library: "tcmalloc",
		What: "as shipped: free pages go back slowly, as others are freed",
	},
	{
		Name: "tcmalloc-decommit", Allocator: "tcmalloc", Library: "tcmalloc",
		Env: []Variable{{Name: "TCMALLOC_AGGRESSIVE_DECOMMIT", Value: "t"}},
		Versions: Versions{
			From: "2.2", Not: []string{"2.8"},
			Why: "the variable came with 2.2; 2.8 crashes with it",
		},
		What: "pages go back as soon as they are free",
	},
	{
		Name: "mimalloc", Allocator: "mimalloc", Library: "mimalloc",
		What: "as shipped: free pages go back after a delay, but only while the program allocates",
	},
	{
		Name: "mimalloc-reset", Allocator: "mimalloc", Library: "mimalloc",
		// Called decommit_delay and purge_delay later; all versions take this name.
		Env:      []Variable{{Name: "MIMALLOC_RESET_DELAY", Value: "0"}},
		Versions: Versions{From: "1.6", Why: "the variable came with it"},
		What:     "pages go back as soon as they are free",
	},
}

// Background reports whether the variant has a jemalloc thread give memory back.
func (v *Variant) Background() bool {
	return slices.ContainsFunc(v.Env, func(e Variable) bool {
		return e.Name == "MALLOC_CONF" && strings.Contains(e.Value, "background_thread:true")
	})
}

// All lists the variants.
func All() []Variant { return slices.Clone(table) }

// Names lists the names of all variants.
func Names() []string {
	names := make([]string, len(table))
	for i, v := range table {
		names[i] = v.Name
	}
	return names
}

// Choose finds variants by their names, separated by commas; an empty list is
// all of them. The baseline is always among them, in front.
func Choose(list string) ([]Variant, error) {
	if strings.TrimSpace(list) == "" {
		return All(), nil
	}
	chosen := []Variant{table[0]}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(table, func(v Variant) bool { return v.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no variant is called %q: there are %s", name, strings.Join(Names(), ", "))
		}
		if !slices.ContainsFunc(chosen, func(v Variant) bool { return v.Name == name }) {
			chosen = append(chosen, table[i])
		}
	}
	return chosen, nil
}

// Hold reports whether the row is valid for a version of its allocator; for an
// unknown version it is assumed to be.
func (v Versions) Hold(version string) bool {
	if version == "" {
		return true
	}
	return compareVersions(version, v.From) >= 0 && !slices.ContainsFunc(v.Not, func(n string) bool { return compareVersions(version, n) == 0 })
}

// compareVersions compares numbers between dots; what follows them, as in
// "5.3.0-1", does not count. Missing numbers are 0.
func compareVersions(a, b string) int {
	x, y := versionNumbers(a), versionNumbers(b)
	for len(x) < len(y) {
		x = append(x, 0)
	}
	for len(y) < len(x) {
		y = append(y, 0)
	}
	return slices.Compare(x, y)
}

func versionNumbers(s string) []int {
	var out []int
	n, digits := 0, false
	for _, c := range s + "." {
		switch {
		case c >= '0' && c <= '9':
			n, digits = min(n*10+int(c-'0'), 1<<30), true
		case c == '.' && digits:
			out = append(out, n)
			n, digits = 0, false
		default:
			if digits {
				out = append(out, n)
			}
			return out
		}
	}
	return out
}
