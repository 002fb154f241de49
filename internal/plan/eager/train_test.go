package eager

import (
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// sizesOf lists the sizes that fn allocates.
func sizesOf(m *Machine, fn func()) []int64 {
	from := len(m.Ledger.Tensors)
	fn()
	var out []int64
	for _, t := range m.Ledger.Tensors[from:] {
		out = append(out, t.Bytes)
	}
	return out
}

// live adds up what is there.
func live(m *Machine) int64 {
	var n int64
	for _, t := range m.Ledger.Tensors {
		if t.Death == ledger.Lives {
			n += t.Bytes
		}
	}
	return n
}

// The sizes are those of recorded runs of Adafactor: the result, the partial
// results of thread blocks and a counter for each column of blocks.
func TestVectorNorm(t *testing.T) {
	for _, c := range []struct {
		rows, columns int64
		all, down     []int64
	}{
		{5000, 896, []int64{2, 2112, 4}, []int64{1792, 36_241_408, 28}},
		{1024, 896, []int64{2, 448, 4}, []int64{1792, 7_340_032, 28}},
		{256, 896, []int64{2, 112, 4}, []int64{1792}},
	} {
		m := New(H200)
		x := m.Empty("x", BFloat16, c.rows, c.columns)
		if got := sizesOf(m, func() { m.VectorNormAll(x).Drop() }); !slices.Equal(got, c.all) {
			t.Errorf("norm of [%d, %d] allocates %d, recorded %d", c.rows, c.columns, got, c.all)
		}
		if got := sizesOf(m, func() { m.VectorNorm(x, -2).Drop() }); !slices.Equal(got, c.down) {
			t.Errorf("norm of the columns of [%d, %d] allocates %d, recorded %d", c.rows, c.columns, got, c.down)
		}
		if got := sizesOf(m, func() { m.VectorNorm(x, -1).Drop() }); !slices.Equal(got, []int64{2 * c.rows}) {
			t.Errorf("norm of the rows of [%d, %d] allocates %d", c.rows, c.columns, got)
		}
	}
}

// A buffer for as many chunks of 64 Ki elements as the largest tensor has, for
// every tensor, and the norms in the tensors' type.
func TestForeachNorm(t *testing.T) {
	m := New(H200)
	ts := []*Tensor{m.Empty("x", BFloat16, 5000, 896), m.Empty("x", BFloat16, 896)}
	got := sizesOf(m, func() { Drop(m.ForeachNorm(ts)...) })
	if want := []int64{2 * 69 * 4, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("allocates %d, want %d", got, want)
	}
}

// The parts are those of a recorded llama layer under FSDP.
func TestCopyTables(t *testing.T) {
	layer := []int64{1_835_008, 458_752, 458_752, 1_835_008, 4_358_144, 4_358_144, 4_358_144, 1792, 1792}
	eighth := make([]int64, len(layer))
	for i, n := range layer {
		eighth[i] = n / 8
	}
	for _, c := range []struct {
		what string
		run  func(m *Machine)
		want int64
	}{
		{"one rank", func(m *Machine) { m.ChunkCatScratch(layer) }, 69_456},
		{"one rank, root", func(m *Machine) { m.ChunkCatScratch([]int64{8_960_000, 1792, 8_960_000}) }, 70_168},
		{"eight ranks", func(m *Machine) { m.ChunkCatScratch(eighth) }, 9088},
		{"copy-out from eight ranks", func(m *Machine) { m.SplitCopyScratch(eighth, 8) }, 4624},
	} {
		m := New(H200)
		if got := sizesOf(m, func() { c.run(m) }); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %d, recorded %d", c.what, got, c.want)
		}
	}
}

// Autocast casts a weight that trains once and keeps the cast until the region
// ends; a frozen weight is cast for each product.
func TestAutocastCache(t *testing.T) {
	for _, c := range []struct {
		trains bool
		casts  int
	}{{true, 1}, {false, 2}} {
		m := New(H200)
		w := m.Parameter(Float32, c.trains, 64, 32)
		x := m.Empty("x", BFloat16, 16, 32)
		before := live(m)
		casts := 0
		m.Autocast(BFloat16, func() {
			for _, n := range sizesOf(m, func() {
				for range 2 {
					y := m.Linear(x, w, nil)
					y.Drop()
				}
			}) {
				if n == 64*32*2 {
					casts++
				}
			}
		})
		if casts != c.casts {
			t.Errorf("trains %v: %d casts, want %d", c.trains, casts, c.casts)
		}
		if got := live(m) - before; got != m.Device.BlasWorkspace {
			t.Errorf("trains %v: %d bytes are left after the region beside the workspace", c.trains, got-m.Device.BlasWorkspace)
		}
	}
}

// chain is a function with more saved tensors than its argument.
func chain(m *Machine, w *Tensor) Function {
	return func(args []*Tensor) *Tensor {
		h := m.Linear(args[0], w, nil)
		a := m.Activation("silu", h)
		h.Drop()
		y := m.Linear(a, w, nil)
		a.Drop()
		return y
	}
}

// Each kind of checkpoint keeps the argument alone between the passes, and in
// the end nothing but gradients.
func TestCheckpointsKeepArguments(t *testing.T) {
	kinds := map[string]func(m *Machine, fn Function, args ...*Tensor) *Tensor{
		"plain":     func(_ *Machine, fn Function, args ...*Tensor) *Tensor { return fn(args) },
		"full":      (*Machine).Checkpoint,
		"reentrant": (*Machine).CheckpointReentrant,
	}
	const size = 64 * 64 * 2
	kept := map[string]int64{"plain": 4 * size, "full": 2 * size, "reentrant": 2 * size} // with the result
	for name, checkpoint := range kinds {
		m := New(H200)
		w := m.Parameter(BFloat16, true, 64, 64)
		m.Handle()
		base := live(m)
		x := m.Empty("x", BFloat16, 64, 64)
		m.RequireGrad(x)
		y := checkpoint(m, chain(m, w), x)
		x.Drop()
		if got := live(m) - base; got != kept[name] {
			t.Errorf("%s: %d bytes between the passes, want %d", name, got, kept[name])
		}
		m.BackwardFrom(y)
		y.Drop()
		// The weight's gradient and the workspace of the backward thread.
		if got, want := live(m)-base, int64(size)+m.Device.BlasWorkspace; got != want {
			t.Errorf("%s: %d bytes in the end, want %d", name, got, want)
		}
		if w.Grad() == nil {
			t.Errorf("%s: no gradient", name)
		}
	}
}

// A storage that is emptied takes its views along; the graph that saved them
// finds them again.
func TestResize(t *testing.T) {
	m := New(H200)
	w := m.Parameter(BFloat16, true, 64, 32)
	x := m.Empty("x", BFloat16, 16, 32)
	m.RequireGrad(x)
	y := m.Linear(x, w, nil)
	whole := live(m)
	m.FreeStorage(w)
	if got := whole - live(m); got != w.Bytes() {
		t.Errorf("%d bytes freed, want %d", got, w.Bytes())
	}
	m.FreeStorage(w) // nothing left to free
	m.AllocStorage(w, w.Bytes(), "again")
	m.AllocStorage(w, w.Bytes(), "again")
	if live(m) != whole {
		t.Errorf("%d bytes after the storage is back, want %d", live(m), whole)
	}
	m.BackwardFrom(y)
	if w.Grad() == nil || x.Grad() == nil {
		t.Error("no gradient")
	}
}
