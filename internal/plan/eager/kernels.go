package eager

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Kernels knows what PyTorch's CUDA kernels allocate, op by op.
type Kernels struct {
	device   Device
	machines map[int]*Machine // by stream: each has its own workspaces of cuBLAS
	rules    map[string]func(*running)
	guessed  int64 // the largest workspace of cuDNN that is a guess
}

// MaxBytes is more than any GPU has. Tensors and workspaces that are larger are
// taken for mistakes of a ledger.
const MaxBytes = 1 << 42

// NewKernels returns the kernels of a device.
func NewKernels(d Device) *Kernels {
	return &Kernels{device: d, machines: map[int]*Machine{}, rules: kernelRules()}
}

// Guessed is the largest workspace so far that cuDNN was not seen to take: how it
// chooses its kernels is not public.
func (k *Kernels) Guessed() int64 { return k.guessed }

// Call is one call of an op.
type Call struct {
	Op      string // aten.addmm.default
	In, Out []Meta
	Fresh   []bool // of Out: the storage is new with this call
	Args    []any  // as in the ledger; a tensor is a Ref
	Kwargs  map[string]any
	Thread  int // 1: autograd's
	Stream  int

	// Workspaces are what cuDNN said that the passes of a convolution take, -1 if
	// it was not asked. OnGPU: it knew the GPU, and was not only told of it.
	Workspaces []int64
	OnGPU      bool
}

// Ref is an argument that is a tensor: a position in In.
type Ref int

// Meta is what is known of a tensor.
type Meta struct {
	DType         DType
	Known         bool // DType is the tensor's
	Shape, Stride []int64
	Bytes         int64 // of its storage, for fresh outputs
}

// Move is an allocation or a free within a call.
type Move struct {
	Bytes int64 // allocated; 0 for a free
	Out   int   // the output it becomes, or -1
	Free  int   // the move whose allocation is freed, or -1
}

// Run returns the moves of a call in order. An allocation that is neither an
// output nor freed stays for the rest of the run: a workspace. known reports
// whether the op is.
func (k *Kernels) Run(c *Call) (moves []Move, known bool) {
	m := k.machines[c.Stream]
	if m == nil {
		m = New(k.device)
		m.NoGrad(true)
		k.machines[c.Stream] = m
	}
	m.backward = c.Thread == 1
	r := &running{Machine: m, Call: c, kernels: k}
	r.reset()
	name, known := c.name()
	if rule := k.rules[name]; rule != nil && r.given(needs[name]) {
		if rule(r); r.impossible() {
			r.reset()
		}
	}
	for i := range c.Out { // those that no rule has made
		r.output(i)
	}
	return r.moves(), known
}

// name is the op without its overload, and whether it is one of PyTorch's.
func (c *Call) name() (name string, known bool) {
	space, rest, _ := strings.Cut(c.Op, ".")
	if i := strings.LastIndexByte(rest, '.'); i > 0 {
		rest = rest[:i]
	}
	switch space {
	case "aten", "prims", "torchvision", "torchaudio", "c10d", "_c10d_functional", "profiler":
		return rest, true
	}
	return rest, false
}

// running is a call that is being run.
type running struct {
	*Machine
	*Call
	kernels *Kernels
	in      []*Tensor
	made    []*Tensor // outputs so far
}

// reset forgets what was allocated.
func (r *running) reset() {
	r.Ledger.Tensors, r.Ledger.Events = r.Ledger.Tensors[:0], r.Ledger.Events[:0]
	r.made = make([]*Tensor, len(r.Out))
}

// given makes the inputs, which have no memory of their own here. It reports
// whether all could be made and the first have as many dimensions as are needed,
// and elements.
func (r *running) given(dims []int) bool {
	if len(r.In) < len(dims) || dims == nil && len(r.In) == 0 {
		return false
	}
	for i := range r.In {
		t := r.meta(&r.In[i])
		if t == nil || i < len(dims) && (t.Dims() < dims[i] || t.Elements() == 0) {
			return false
		}
		r.in = append(r.in, t)
	}
	return true
}

// impossible reports whether a rule has allocated more than there can be: its
// arguments do not belong together.
func (r *running) impossible() bool {
	return slices.ContainsFunc(r.Ledger.Tensors, func(t ledger.Tensor) bool { return t.Bytes > MaxBytes })
}

// meta is a tensor without memory, or nil if it is of a kind that rules do not
// work on.
func (r *running) meta(m *Meta) *Tensor {
	if !m.Known || len(m.Shape) > MaxDims || len(m.Stride) != len(m.Shape) {
		return nil
	}
	bytes := m.DType.Size()
	for d, n := range m.Shape {
		if n < 0 || m.Stride[d] < 0 || n > MaxBytes/bytes {
			return nil
		}
		bytes *= max(n, 1)
	}
	t := r.tensor(m.DType, m.Shape)
	copy(t.stride[:], m.Stride)
	t.store = r.alloc(0, "")
	return t
}

// output allocates an output, unless it is there or is no new memory.
func (r *running) output(i int) *Tensor {
	if i < 0 || i >= len(r.Out) || !r.Fresh[i] || r.made[i] != nil {
		return nil
	}
	return r.outputOf(i, r.Out[i].Bytes)
}

// outputOf allocates an output whose storage has so many bytes.
func (r *running) outputOf(i int, bytes int64) *Tensor {
	if i < 0 || i >= len(r.Out) || !r.Fresh[i] || r.made[i] != nil {
		return nil
	}
	t := r.tensor(UInt8, []int64{bytes})
	t.store = r.alloc(bytes, r.Op)
	r.made[i] = t
	return t
}

// outputs allocates all outputs in order.
func (r *running) outputs() {
	for i := range r.Out {
		r.output(i)
	}
}

// becomes makes a tensor that a rule has allocated an output.
func (r *running) becomes(i int, t *Tensor) {
	if t.store.id != noEntry && r.Fresh[i] && r.made[i] == nil {
		r.made[i] = t
		return
	}
	t.Drop()
}

// moves are the entries of the ledger.
func (r *running) moves() []Move {
	l := r.Ledger
	out := make([]Move, 0, len(l.Events))
	at := make([]int, len(l.Tensors))
	for _, e := range l.Events {
		if e < 0 {
			out = append(out, Move{Out: -1, Free: at[^e]})
			continue
		}
		at[e] = len(out)
		out = append(out, Move{Bytes: l.Tensors[e].Bytes, Out: -1, Free: -1})
	}
	for i, t := range r.made {
		if t != nil && t.store.id != noEntry && l.Tensors[t.store.id].Death == ledger.Lives {
			out[at[t.store.id]].Out = i
		}
	}
	return out
}

// number is an argument as a whole number.
func (c *Call) number(i int, otherwise int64) int64 {
	if i < len(c.Args) {
		switch v := c.Args[i].(type) {
		case float64:
			return int64(v)
		case int64:
			return v
		case int:
			return int64(v)
		case bool:
			if v {
				return 1
			}
			return 0
		}
	}
	return otherwise
}

// numbers is an argument as a list of whole numbers.
func (c *Call) numbers(i int) []int64 {
	if i >= len(c.Args) {
		return nil
	}
	list, ok := c.Args[i].([]any)
	if !ok {
		if n := c.number(i, -1<<62); n != -1<<62 {
			return []int64{n}
		}
		return nil
	}
	var out []int64
	for _, v := range list {
		switch v := v.(type) {
		case float64:
			out = append(out, int64(v))
		case int64:
			out = append(out, v)
		case int:
			out = append(out, int64(v))
		case bool:
			if v {
				out = append(out, 1)
			} else {
				out = append(out, 0)
			}
		}
	}
	return out
}

// wants reports whether a list of bools, such as output_mask, has true at j.
func (c *Call) wants(i, j int) bool {
	list := c.numbers(i)
	return j < len(list) && list[j] != 0
}

// slots are where the n results of an op with an output_mask are among the
// outputs: those that are not wanted are none of them.
func (r *running) slots(mask, n int) []int {
	out := make([]int, n)
	next := 0
	for i := range out {
		out[i] = -1
		if r.wants(mask, i) && next < len(r.Out) {
			out[i] = next
			next++
		}
	}
	return out
}

// dims is what a reduction is over: an argument, or everything.
func (r *running) dims(i int, x *Tensor) []bool {
	over := make([]bool, x.dims)
	list := r.numbers(i)
	for _, d := range list {
		if d < 0 {
			d += int64(x.dims)
		}
		if d >= 0 && d < int64(x.dims) {
			over[d] = true
		}
	}
	if len(list) == 0 {
		for d := range over {
			over[d] = true
		}
	}
	return over
}

// reduce is the scratch of a reduction of x over some dimensions, with
// intermediate results of arg bytes.
func (r *running) reduce(x *Tensor, over []bool, arg int64) {
	outputs, inputs := int64(1), int64(1)
	const far = int64(1) << 62
	reduced, kept := far, far
	for d, is := range over {
		n, s := x.dim[d], x.stride[d]
		if n == 1 {
			continue
		}
		if is {
			inputs *= n
			reduced = min(reduced, s)
		} else {
			outputs *= n
			kept = min(kept, s)
		}
	}
	if inputs*outputs == 0 {
		return
	}
	r.meet(r.Op, reduction{outputs: outputs, inputs: inputs, inner: kept == far || reduced < kept, size: x.dtype.Size(), arg: arg})
}

// wide is the type that sums are computed in.
func wide(d DType) int64 {
	if d.IsFloat() {
		return max(d.Size(), 4)
	}
	return d.Size()
}

// scratchFor allocates memory for the time that f runs.
func (r *running) scratchFor(bytes int64, f func()) {
	s := r.scratch(bytes, r.Op)
	f()
	r.unref(s)
}
