package ledger

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCommon(t *testing.T) {
	tests := []struct {
		name string
		a, b []int64
		want int
	}{
		{"both empty", nil, nil, 0},
		{"one empty", []int64{1, 2}, nil, 0},
		{"equal", []int64{1, 2, 3}, []int64{1, 2, 3}, 3},
		{"nothing common", []int64{1, 1, 1}, []int64{2, 2}, 0},
		{"one missing", []int64{1, 2, 3, 4}, []int64{1, 3, 4}, 3},
		{"one replaced", []int64{1, 2, 3}, []int64{1, 9, 3}, 2},
		{"swapped", []int64{1, 2}, []int64{2, 1}, 1},
		{"reversed", []int64{1, 2, 3, 4}, []int64{4, 3, 2, 1}, 1},
		{"repeats", []int64{5, 5, 7, 5, 5, 7}, []int64{5, 7, 5, 7}, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := matched(t, tt.a, tt.b, Common(tt.a, tt.b)); got != tt.want {
				t.Errorf("%d matched, want %d", got, tt.want)
			}
		})
	}
}

// The result is a common subsequence, and none is longer.
func TestCommonIsLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SliceOfN(rapid.Int64Range(1, 5), 0, 40)
		a, b := few.Draw(t, "a"), few.Draw(t, "b")
		if got, want := matched(t, a, b, Common(a, b)), longest(a, b); got != want {
			t.Fatalf("%d matched, want %d", got, want)
		}
	})
}

// matched checks that a matching is one and returns its length.
func matched(t interface {
	Helper()
	Fatalf(string, ...any)
}, a, b []int64, match []int32,
) int {
	t.Helper()
	n, last := 0, int32(-1)
	for i, j := range match {
		if j < 0 {
			continue
		}
		if j <= last || a[i] != b[j] {
			t.Fatalf("%v with %v: %v", a, b, match)
		}
		n, last = n+1, j
	}
	return n
}

// longest computes the length by the textbook's table.
func longest(a, b []int64) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func BenchmarkCommon(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]int64, 20000)
	for i := range x {
		x[i] = r.Int64N(50)
	}
	y := slices.Clone(x)
	for range 100 {
		y[r.IntN(len(y))]++
	}
	for b.Loop() {
		Common(x, y)
	}
}
