package eager

import (
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
)

// kernel is an op that was run on an H200 with PyTorch 2.11 and cuDNN 9.19, and
// what it allocated (and, negative, freed) in its forward and backward pass.
type kernel struct {
	Op                                string
	Bk, Dt, Mask, Order               string
	B, H, Hk, Sq, Sk, Dq, Dv, S, D, N int64
	V, Kv, Bh                         int64
	Drop                              float64
	Causal, Grad                      bool
	Fwd, Bwd                          []int64
}

func readKernels(t *testing.T) []kernel {
	t.Helper()
	return jsonl.Must[kernel](t, "../../../testdata/plan/kernels.jsonl.gz")
}

var dtypes = map[string]DType{"bf16": BFloat16, "fp16": Float16, "fp32": Float32, "i64": Int64, "bool": Bool}

// births of tensors from number start on.
func births(m *Machine, start int) []int64 {
	out := []int64{}
	for _, t := range m.Ledger.Tensors[start:] {
		out = append(out, t.Bytes)
	}
	return out
}

func positive(events []int64) []int64 {
	out := []int64{}
	for _, e := range events {
		if e > 0 {
			out = append(out, e)
		}
	}
	return out
}

// Every kernel of attention allocates what it was seen to allocate.
func TestAttentionKernels(t *testing.T) {
	backends := map[string]Backend{
		"flash": FlashAttention, "efficient": EfficientAttention, "cudnn": CuDNNAttention, "math": MathAttention,
	}
	wrong := 0
	for _, k := range readKernels(t) {
		if k.Op != "sdpa" {
			continue
		}
		m := New(H200)
		m.Handle()
		m.backward = true
		m.Handle()
		m.backward = false
		d := dtypes[k.Dt]
		leaf := func(heads, rows, width int64) *Tensor {
			var y *Tensor
			if k.Order == "bhsd" {
				y = m.Empty("leaf", d, k.B, heads, rows, width)
			} else {
				y = m.heads("leaf", d, k.B, heads, rows, width)
			}
			y.Train(k.Grad)
			return y
		}
		a := Attention{Q: leaf(k.H, k.Sq, k.Dq), K: leaf(k.Hk, k.Sk, k.Dq), V: leaf(k.Hk, k.Sk, k.Dv), Dropout: k.Drop > 0}
		switch k.Mask {
		case "bool":
			a.Mask = m.Empty("mask", Bool, k.B, 1, k.Sq, k.Sk)
		case "float":
			a.Mask = m.Empty("mask", d, k.B, 1, k.Sq, k.Sk)
		case "grad":
			a.Mask = m.Empty("mask", d, 1, k.H, k.Sq, k.Sk)
			a.Mask.Train(true)
		default:
			a.Causal = k.Causal && k.Sq > 1
		}
		start := len(m.Ledger.Tensors)
		y := m.SDPA(backends[k.Bk], a)
		if got, want := births(m, start), positive(k.Fwd); !slices.Equal(got, want) {
			t.Errorf("%+v\nforward: planned %v, seen %v", k, got, want)
			wrong++
		}
		if k.Grad {
			g := m.heads("gradient", d, k.B, k.H, k.Sq, k.Dv)
			start = len(m.Ledger.Tensors)
			m.run(y.node, y.slot, g.retain())
			want := slices.DeleteFunc(positive(k.Bwd), func(b int64) bool {
				return b == H200.BlasWorkspace // the thread's first product
			})
			if got := births(m, start); !slices.Equal(got, want) {
				t.Errorf("%+v\nbackward: planned %v, seen %v", k, got, want)
				wrong++
			}
		}
		if wrong > 12 {
			t.Fatal("and so on")
		}
	}
}

// Reductions that split their work, and the gradient of an embedding, allocate
// the buffers they were seen to allocate.
func TestReductionKernels(t *testing.T) {
	wrong := 0
	for _, k := range readKernels(t) {
		m := New(H200)
		d := dtypes[k.Dt]
		var run func()
		switch k.Op {
		case "sum01":
			x := m.Empty("x", d, k.B, k.S, k.D)
			run = func() { m.SumTo(x, []int64{1, 1, k.D}) }
		case "sum0":
			x := m.Empty("x", d, k.B*k.S, k.D)
			run = func() { m.Sum(x, 0, false) }
		case "mean":
			x := m.Empty("x", d, k.B, k.S, k.D)
			run = func() { m.Mean(x) }
		case "sumlast":
			x := m.Empty("x", d, k.B, k.S, k.D)
			run = func() { m.Sum(x, -1, true) }
		case "sum012":
			x := m.Empty("x", d, k.B, k.S, k.H, k.D)
			run = func() { m.SumTo(x, []int64{1, 1, 1, k.D}) }
		case "sumrep":
			x := m.Empty("x", d, k.B, k.H, 4, k.S, k.D)
			run = func() { m.SumTo(x, []int64{k.B, k.H, 1, k.S, k.D}) }
		case "sumrept":
			x := m.Transpose(m.Empty("x", d, k.B, k.H, 4, k.D, k.S), -1, -2)
			run = func() { m.SumTo(x, []int64{k.B, k.H, 1, k.S, k.D}) }
		case "sumbias":
			x := m.Empty("x", d, k.B, k.H, k.S, k.S)
			run = func() { m.SumTo(x, []int64{1, k.H, k.S, k.S}) }
			if k.B == 1 {
				continue // torch makes a copy, autograd does not ask for one
			}
		case "sumall":
			x := m.Empty("x", d, k.N)
			run = func() { m.Total(x) }
			if d.IsFloat() {
				run = func() { m.Sum(x, 0, false) }
			}
		case "embed":
			g, ids := m.Empty("g", d, k.N, k.D), m.Empty("ids", Int64, k.N)
			run = func() { m.embeddingGrad(g, ids, k.V) }
		case "all":
			x := m.Empty("x", Bool, k.N)
			run = func() { m.All(x) }
		default:
			continue
		}
		start := len(m.Ledger.Tensors)
		run()
		if got, want := births(m, start), positive(k.Fwd); !slices.Equal(got, want) {
			t.Errorf("%+v\nplanned %v, seen %v", k, got, want)
			if wrong++; wrong > 12 {
				t.Fatal("and so on")
			}
		}
	}
}

// cuDNN's random state is made from nothing: 24 bytes for each thread.
func TestDropoutState(t *testing.T) {
	moves, known := NewKernels(H200).Run(&Call{
		Op: "aten._cudnn_init_dropout_state.default", Out: []Meta{{DType: UInt8, Known: true, Bytes: 1}}, Fresh: []bool{true}, Args: []any{0.1, true, 5.0},
	})
	want := []Move{{Bytes: 132 * 2048 * 24, Out: 0, Free: -1}}
	if !known || !slices.Equal(moves, want) {
		t.Errorf("moves %v, want %v", moves, want)
	}
}

// The fast path of nn.MultiheadAttention without a fused kernel, as an H200 ran it:
// the input lies by columns.
func TestMultiHead(t *testing.T) {
	meta := func(strides []int64, shape ...int64) Meta {
		if strides == nil {
			strides = []int64{1}
			for i := len(shape) - 1; i > 0; i-- {
				strides = append([]int64{strides[0] * shape[i]}, strides...)
			}
		}
		return Meta{DType: Float32, Known: true, Shape: shape, Stride: strides}
	}
	x := meta([]int64{49152, 1, 256}, 128, 256, 192)
	out := meta(nil, 128, 256, 192)
	const mib = 1 << 20
	out.Bytes = 24 * mib
	c := &Call{
		Op: "aten._native_multi_head_attention.default", In: []Meta{x, x, x, meta(nil, 576, 192), meta(nil, 576), meta(nil, 192, 192), meta(nil, 192)},
		Out: []Meta{out, meta(nil, 0)}, Fresh: []bool{true, false},
		Args: []any{nil, nil, nil, 192.0, 4.0, nil, nil, nil, nil, nil, false},
	}
	k := NewKernels(H200)
	k.Run(c) // takes the workspaces of cuBLAS
	moves, known := k.Run(c)
	var got []int64
	for _, m := range moves {
		if m.Free >= 0 {
			got = append(got, -moves[m.Free].Bytes/mib)
		} else {
			got = append(got, m.Bytes/mib)
		}
	}
	if want := []int64{72, 72, -72, 128, -128, 24, 24, -24, -72}; !known || !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if moves[6].Out != 0 {
		t.Errorf("the output is not the last: %+v", moves)
	}
}
