package eager

import (
	"slices"
	"testing"
)

func TestLayerNorm(t *testing.T) {
	for _, c := range []struct {
		name              string
		d                 DType
		rows, width       int64
		forward, backward []int64
	}{
		{
			name: "short", d: BFloat16, rows: 3456, width: 896,
			forward:  []int64{6193152, 13824, 13824},
			backward: []int64{6193152, 1792, 1792},
		},
		{
			name: "in fp32 the statistics are as wide", d: Float32, rows: 100, width: 64,
			forward:  []int64{25600, 400, 400},
			backward: []int64{25600, 256, 256},
		},
		{
			// 12 blocks wide, so that 2730 parts fit into the grid; fewer are
			// needed. Their sums replace the results, and need buffers themselves.
			name: "many short rows", d: BFloat16, rows: 65537, width: 384,
			forward:  []int64{65537 * 384 * 2, 65537 * 4, 65537 * 4},
			backward: []int64{65537 * 384 * 2, 768, 768, 2049 * 768, 2049 * 768, 768, 33 * 384 * 128 * 4, 12, 768, 33 * 384 * 128 * 4, 12},
		},
		{
			name: "many long rows", d: BFloat16, rows: 65537, width: 2112,
			forward:  []int64{65537 * 2112 * 2, 65537 * 4, 65537 * 4},
			backward: []int64{65537 * 2112 * 2, 4224, 4224},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New(H200)
			x, w, b := leaf(m, c.d, c.rows, c.width), leaf(m, c.d, c.width), leaf(m, c.d, c.width)
			y := m.LayerNorm(x, w, b)
			if got := births(m, 3); !slices.Equal(got, c.forward) {
				t.Errorf("forward %v, want %v", got, c.forward)
			}
			g := m.Unary("gradient", y)
			start := len(m.Ledger.Tensors)
			m.run(y.node, y.slot, g.retain())
			if got := births(m, start); !slices.Equal(got, c.backward) {
				t.Errorf("backward %v, want %v", got, c.backward)
			}
		})
	}
}

func TestLayerNormParts(t *testing.T) {
	for _, c := range []struct{ rows, width, want int64 }{
		{65536, 768, 0},               // not many rows
		{65537, 768, 1365},            // 24 blocks wide: the grid has room for 1365 parts
		{65537, 384, 2049},            // a part for every 32 rows
		{1 << 20, 384, 2730},          // as many as the grid has room for
		{1 << 20, 2111, 1 << 15 / 66}, // the last width that leaves half of 132 multiprocessors idle
		{1 << 20, 2112, 0},
	} {
		if got := H200.layerNormParts(c.rows, c.width); got != c.want {
			t.Errorf("%d rows of %d: %d parts, want %d", c.rows, c.width, got, c.want)
		}
	}
}

// The mask of a dropout comes before its result and is what the derivative
// keeps; without dropout there is nothing.
func TestDropout(t *testing.T) {
	m := New(H200)
	x := leaf(m, BFloat16, 100, 10)
	y := m.Dropout(x, 0.1, true)
	m.Dropout(x, 0, true).Drop()
	m.Dropout(x, 0.1, false).Drop()
	if got, want := births(m, 1), []int64{1000, 2000}; !slices.Equal(got, want) {
		t.Errorf("forward %v, want %v", got, want)
	}
	y.Drop()
}
