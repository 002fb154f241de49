package eager

import (
	"slices"
	"testing"
)

// The ops of linear attention: what they and their derivatives allocate, in
// order and without their inputs.
func TestDeltaOps(t *testing.T) {
	// columns is a tensor [2, 3, 8] that lies in memory with its last dimension
	// outside.
	columns := func(m *Machine) *Tensor { return m.Transpose(leaf(m, Float32, 2, 8, 3), 1, 2) }
	for _, c := range []struct {
		name              string
		inputs            int
		run               func(m *Machine) *Tensor
		forward, backward []int64
	}{
		{
			name: "triangular systems, solved at once", inputs: 2,
			run: func(m *Machine) *Tensor {
				return m.SolveTriangular(leaf(m, Float32, 3, 3, 64, 64), leaf(m, Float32, 3, 3, 64, 16))
			},
			// The solution and the addresses of nine matrices each.
			forward: []int64{36864, 72, 72, 1},
			// The same, then the product, its negative and the triangle of that, and
			// the gradient of the leaf, which lies by rows.
			backward: []int64{36864, 36864, 72, 72, 1, 147456, 147456, 147456, 36864},
		},
		{
			name: "few triangular systems, solved one by one", inputs: 2,
			run: func(m *Machine) *Tensor {
				return m.SolveTriangular(leaf(m, Float32, 8, 64, 64), leaf(m, Float32, 8, 64, 16))
			},
			forward:  []int64{32768, 1},
			backward: []int64{32768, 32768, 1, 131072, 131072, 131072, 32768},
		},
		{
			name: "matrices that lie by columns are solved where they are", inputs: 2,
			run: func(m *Machine) *Tensor {
				a := m.Transpose(leaf(m, Float32, 8, 64, 64), 1, 2)
				return m.SolveTriangular(a, leaf(m, Float32, 8, 64, 16))
			},
			forward:  []int64{32768, 1},
			backward: []int64{32768, 32768, 1, 131072, 131072, 131072, 32768, 131072},
		},
		{
			name: "a part of each matrix is copied", inputs: 2,
			run: func(m *Machine) *Tensor {
				a := m.Narrow(leaf(m, Float32, 8, 64, 128), 2, 64)
				return m.SolveTriangular(a, leaf(m, Float32, 8, 64, 16))
			},
			forward:  []int64{32768, 131072, 1},
			backward: []int64{32768, 32768, 131072, 1, 131072, 131072, 131072, 32768, 262144},
		},
		{
			name: "a running sum", inputs: 1,
			run:      func(m *Machine) *Tensor { return m.CumSum(leaf(m, Float32, 4, 64), 1) },
			forward:  []int64{1024},
			backward: []int64{1024, 1024, 1024, 1024},
		},
		{
			name: "a running sum of what is not contiguous", inputs: 1,
			run:      func(m *Machine) *Tensor { return m.CumSum(columns(m), 2) },
			forward:  []int64{192, 192},
			backward: []int64{192, 192, 192, 192, 192},
		},
		{
			name: "a convolution of each channel", inputs: 2,
			run: func(m *Machine) *Tensor {
				x := m.Transpose(leaf(m, BFloat16, 2, 10, 64), 1, 2)
				return m.DepthwiseConv(x, leaf(m, BFloat16, 64, 1, 4), 3)
			},
			forward: []int64{2560, 3328}, // a contiguous copy, and three rows more
			// The copy, the gradients of the weight and of the input, and that of
			// the leaf, which lies otherwise.
			backward: []int64{3328, 2560, 512, 2560, 2560},
		},
		{
			name: "the same by cuDNN", inputs: 2,
			run: func(m *Machine) *Tensor {
				x := m.Transpose(leaf(m, Float16, 2, 10, 64), 1, 2)
				return m.DepthwiseConv(x, leaf(m, Float16, 64, 1, 4), 3)
			},
			forward:  []int64{2560, 3328},
			backward: []int64{3328, 2560, 2560, 512, 2560},
		},
		{
			name: "padding", inputs: 1,
			run:      func(m *Machine) *Tensor { return m.PadDim(leaf(m, Float32, 2, 50, 3), 1, 64) },
			forward:  []int64{1536},
			backward: []int64{1536, 1200},
		},
		{
			name: "padding that is none still copies", inputs: 1,
			run:      func(m *Machine) *Tensor { return m.PadDim(leaf(m, Float32, 2, 64, 3), 1, 64) },
			forward:  []int64{1536},
			backward: []int64{1536, 1536},
		},
		{
			name: "each head twice", inputs: 1,
			run:      func(m *Machine) *Tensor { return m.RepeatInterleave(leaf(m, Float32, 2, 4, 8), 2, 1) },
			forward:  []int64{512},
			backward: []int64{512, 256},
		},
		{
			name: "of the same type it stays where it is", inputs: 1,
			run:      func(m *Machine) *Tensor { return m.ToContiguous(columns(m), Float32) },
			backward: []int64{192},
		},
		{
			name: "a contiguous copy of another type", inputs: 1,
			run:      func(m *Machine) *Tensor { return m.ToContiguous(columns(m), BFloat16) },
			forward:  []int64{96},
			backward: []int64{96, 192, 192},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New(H200)
			m.Device.BlasWorkspace = 1
			y := c.run(m)
			if got := births(m, c.inputs); !slices.Equal(got, c.forward) {
				t.Errorf("forward %v, want %v", got, c.forward)
			}
			start := len(m.Ledger.Tensors)
			m.Backward(y)
			if got := births(m, start); !slices.Equal(got, c.backward) {
				t.Errorf("backward %v, want %v", got, c.backward)
			}
		})
	}
}

// The gradient of what was copied into lies in memory as that does, so that
// the leaf behind it can have it without a copy.
func TestCopyIntoKeepsOrder(t *testing.T) {
	m := New(H200)
	base := m.Scale(m.Transpose(leaf(m, Float32, 4, 8), 0, 1))
	m.CopyInto(base, m.Empty("row", Float32, 1, 4))
	flat := m.Reshape(base, 32)
	start := len(m.Ledger.Tensors)
	m.Backward(flat)
	// The gradient, the rest of it, a part, zeros, and the derivative of Scale.
	if got, want := births(m, start), []int64{128, 128, 16, 16, 128}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
