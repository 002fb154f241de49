package eager

import (
	"testing"

	"github.com/ashlar-mem/ashlar/internal/invariants"
)

// What is dropped is used again: ops leave nothing to the garbage collector but
// the ledger, which grows.
func TestOpsAllocateNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("nothing is used again with the tag invariants")
	}
	m := New(H200)
	x := m.Empty("x", BFloat16, 2, 64, 128)
	w := m.Parameter(BFloat16, true, 256, 128)
	scale := m.Parameter(BFloat16, true, 128)
	ops := func() {
		n := m.Mul(x, scale)
		h := m.Linear(n, w, nil)
		v := m.View(h, 2, 64, 4, 64)
		y := m.Transpose(v, 1, 2)
		u := m.Unsqueeze(y, 0)
		f := m.To(u, Float32)
		p := m.Pow(f)
		mean := m.Mean(p)
		c := m.Cat(-1, f, f)
		Drop(n, h, v, y, u, f, p, mean, c)
	}
	for _, grad := range []bool{false, true} {
		m.NoGrad(!grad)
		ops()
		m.Ledger.Expect(0, 400)
		if got := testing.AllocsPerRun(100, ops); got > 0 {
			t.Errorf("with gradients %v: %v allocations", grad, got)
		}
	}
}

// Whoever looks at a tensor that is gone panics in builds with the tag.
func TestGoneTensorsAreSpoilt(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("only with the tag invariants")
	}
	m := New(H200)
	x := m.Empty("x", BFloat16, 2)
	x.Drop()
	defer func() {
		if recover() == nil {
			t.Error("nobody noticed")
		}
	}()
	m.Clone(x)
}

func BenchmarkMul(b *testing.B) {
	m := New(H200)
	m.NoGrad(true)
	x, y := m.Empty("x", BFloat16, 2, 64, 128), m.Empty("y", BFloat16, 128)
	for b.Loop() {
		m.Mul(x, y).Drop()
	}
}
