package short

import (
	"cmp"
	"os"
	"slices"
	"testing"
)

// Skip leaves a slow test out under -short. Nothing in it may be needed there:
// it has no goroutines that another test has not.
func Skip(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: left out by -short")
	}
}

// Some returns n of all things under -short, from the first to the last at even
// distances, and all of them otherwise.
func Some[T any](all []T, n int) []T {
	if !testing.Short() || len(all) <= n {
		return all
	}
	some := make([]T, n)
	for i := range some {
		some[i] = all[i*len(all)/n]
	}
	return some
}

// Times returns n, or a tenth of it under -short.
func Times(n int) int {
	if testing.Short() {
		return max(1, n/10)
	}
	return n
}

// Files returns the n smallest files under -short, and all of them otherwise.
func Files(t testing.TB, paths []string, n int) []string {
	t.Helper()
	if !testing.Short() || len(paths) <= n {
		return paths
	}
	size := map[string]int64{}
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		size[p] = info.Size()
	}
	some := slices.Clone(paths)
	slices.SortStableFunc(some, func(a, b string) int { return cmp.Compare(size[a], size[b]) })
	return some[:n]
}
