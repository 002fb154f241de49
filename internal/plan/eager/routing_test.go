package eager

import (
	"slices"
	"testing"
)

// What CUB asked for in recordings on an H200.
func TestRadixScratch(t *testing.T) {
	for _, c := range []struct{ count, bits, want int64 }{
		{1554, 12, 1},        // one block sorts all
		{3456, 64, 73_215},   // embedding_dense_backward: all bits
		{6912, 64, 129_535},  // sort
		{6912, 13, 117_247},  // index_put: the bits of 6911
		{6912, 3, 4_607},     // eight rows: a single pass needs no second copy
		{32768, 64, 549_375}, // sort of 4 x 4096 tokens, two experts each
		{32768, 14, 537_087}, // index_put into 16384 rows
		{18648, 64, 320_511}, // 3 x 777 tokens, eight experts each
		{22500, 64, 382_463}, // 5 x 1500 tokens, three experts each
	} {
		if got := radixScratch(c.count, c.bits); got != c.want {
			t.Errorf("%d pairs by %d bits: %d bytes, want %d", c.count, c.bits, got, c.want)
		}
	}
}

// leaf is a tensor that needs a gradient.
func leaf(m *Machine, d DType, shape ...int64) *Tensor { return m.Parameter(d, true, shape...) }

// Every case runs an op and its derivative; forward and backward are what they
// allocate, in order.
func TestRouting(t *testing.T) {
	const mark = 4 // the gradient that the backward pass begins with
	for _, c := range []struct {
		name              string
		run               func(m *Machine) *Tensor
		forward, backward []int64
	}{
		{
			name: "topk",
			run: func(m *Machine) *Tensor {
				v, i := m.TopK(leaf(m, Float32, 100, 8), 2)
				i.Drop()
				return v
			},
			forward:  []int64{3200, 800, 1600},
			backward: []int64{800, 3200},
		},
		{
			name: "a few rows by an index",
			run: func(m *Machine) *Tensor {
				return m.Index(leaf(m, BFloat16, 50, 64), m.Empty("index", Int64, 200))
			},
			forward:  []int64{6400, 1600, 25600},
			backward: []int64{25600, 6400, 1600, 1600, 1600, 1600, 1600, 1},
		},
		{
			name: "an index into eight rows",
			run: func(m *Machine) *Tensor {
				return m.Index(leaf(m, BFloat16, 8, 16), m.Empty("index", Int64, 6912))
			},
			forward:  []int64{256, 55296, 221184},
			backward: []int64{221184, 256, 55296, 55296, 55296, 55296, 55296, 4607},
		},
		{
			name: "division in place keeps a copy of what it overwrites",
			run: func(m *Machine) *Tensor {
				x := m.AddScalar(leaf(m, Float32, 100, 2))
				s := m.Sum(x, -1, true)
				m.DivInPlace(x, s)
				s.Drop()
				return x
			},
			forward: []int64{800, 800, 400, 800},
			// a/b, a/b/b, -g and their product; g/b; the sum to the shape of b.
			backward: []int64{800, 800, 800, 800, 800, 800, 400},
		},
		{
			name: "copies into two parts of a new tensor",
			run: func(m *Machine) *Tensor {
				k := m.Empty("new_empty", BFloat16, 10, 96)
				m.CopyInto(k, leaf(m, BFloat16, 10, 64))
				m.CopyInto(k, leaf(m, Float32, 10, 32))
				return k
			},
			forward: []int64{1920, 1280, 1280},
			// Of the second copy: the rest, the part, zeros in its place and the
			// part in the type of the source; of the first the rest and the part.
			backward: []int64{1920, 1920, 640, 640, 1280, 1920, 1280},
		},
		{
			name: "a grouped product of bf16",
			run: func(m *Machine) *Tensor {
				w := m.Transpose(leaf(m, BFloat16, 8, 32, 16), 1, 2)
				return m.GroupedMM(leaf(m, BFloat16, 100, 16), w, m.Empty("offsets", Int32, 8))
			},
			forward:  []int64{8192, 3200, 32, 6400, 480, 67584},
			backward: []int64{6400, 8192, 480, 67584, 3200, 480, 67584},
		},
		{
			name: "a grouped product of fp32",
			run: func(m *Machine) *Tensor {
				m.Device.BlasWorkspace = mark
				return m.GroupedMM(leaf(m, Float32, 100, 16), leaf(m, Float32, 8, 16, 32), m.Empty("offsets", Int32, 8))
			},
			forward:  []int64{16384, 6400, 32, 12800, mark},
			backward: []int64{12800, 16384, mark, 6400},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New(H200)
			y := c.run(m)
			if got := births(m, 0); !slices.Equal(sorted(got), sorted(c.forward)) {
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

// sorted is a copy in order: a case's arguments are allocated in Go's order.
func sorted(x []int64) []int64 { return slices.Sorted(slices.Values(x)) }

func TestSort(t *testing.T) {
	for _, c := range []struct {
		count int64
		want  []int64
	}{
		{4096, []int64{32768, 32768, 32768}},
		{4097, []int64{32776, 32776, 32776, radixScratch(4097, 64)}},
	} {
		m := New(H200)
		x := m.Empty("ids", Int64, c.count)
		m.Sort(x)
		if got := births(m, 1); !slices.Equal(got, c.want) {
			t.Errorf("%d: %v, want %v", c.count, got, c.want)
		}
	}
}
