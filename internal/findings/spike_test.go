package findings

import (
	"math/rand/v2"
	"testing"
)

// The median of the steps that are left is that of a list of them.
func TestMedianWithout(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		of := make([]uint64, 1+r.IntN(12))
		for i := range of {
			of[i] = r.Uint64N(6)
		}
		var without []int
		var left []uint64
		for i, v := range of {
			switch {
			case r.IntN(3) == 0:
				without = append(without, i)
			case i > 0:
				left = append(left, v)
			}
		}
		if got, want := newRanked(of).medianWithout(without), median(left); got != want {
			t.Fatalf("%d without steps %d: %d, want %d", of, without, got, want)
		}
	}
}
