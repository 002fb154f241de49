package eager

import "github.com/ashlar-mem/ashlar/internal/plan/ledger"

// Device holds the GPU properties that affect allocations.
type Device struct {
	Multiprocessors   int64 // their number decides how reductions are split
	ThreadsPerProc    int64
	Capability        int   // e.g. 90
	BlasWorkspace     int64 // of a cuBLAS handle on a stream
	BlasLtWorkspace   int64 // of cuBLASLt, which adds biases
	SplitKeyWorkspace int64
}

// H200 is the device of the recordings.
var H200 = Device{Multiprocessors: 132, ThreadsPerProc: 2048, Capability: 90, BlasWorkspace: 32 << 20, BlasLtWorkspace: 1 << 20}

// Machine runs ops and enters what they allocate into a ledger.
type Machine struct {
	Ledger *ledger.Ledger
	Device Device

	kind   ledger.Kind // of what is allocated now
	module ledger.Name
	stream uint8

	noGrad   bool
	cast     autocast
	sequence int64
	backward bool // on the thread of the backward pass
	blas     [2]*storage
	blasLt   [2]*storage
	frame    *frame // of the checkpoint that is being run
	scope    *scope
	cached   *opCache // of a selective checkpoint
	pass     *pass    // the backward pass that is running
	arena    arena
	host     bool // what is allocated lies in host memory
	noLoss   bool // models get no labels
}

// New returns a machine with an empty ledger.
func New(d Device) *Machine {
	return &Machine{Ledger: ledger.New(), Device: d}
}

// alloc enters an allocation, unless it has no bytes.
func (m *Machine) alloc(bytes int64, op string) *storage {
	s := m.arena.storages.take()
	*s = storage{refs: 1, id: noEntry}
	if bytes > 0 && !m.host {
		s.id = m.Ledger.Alloc(ledger.Tensor{Bytes: bytes, Op: m.nameOf(op), Module: m.module, Kind: m.kind, Stream: m.stream})
	}
	return s
}

func (m *Machine) unref(s *storage) {
	s.refs--
	if s.refs > 0 {
		return
	}
	if s.id != noEntry {
		m.Ledger.Free(s.id)
	}
	m.arena.storages.give(s)
}

// scratch allocates memory that the op frees itself with unref.
func (m *Machine) scratch(bytes int64, op string) *storage { return m.alloc(bytes, op) }

// Scratch allocates and frees memory at once: a workspace during which nothing
// else is allocated.
func (m *Machine) Scratch(bytes int64, op string) {
	m.unref(m.alloc(bytes, op))
}

// Kind sets what the following allocations are for, and returns the kind before.
func (m *Machine) Kind(k ledger.Kind) ledger.Kind {
	before := m.kind
	m.kind = k
	return before
}

// Enter sets the module whose allocations follow, and returns the one before.
func (m *Machine) Enter(module ledger.Name) ledger.Name {
	before := m.module
	m.module = module
	return before
}

// OnHost has what is allocated from now on lie in host memory, or no longer. Tensors
// there get memory of the GPU by AllocStorage.
func (m *Machine) OnHost(yes bool) { m.host = yes }

// Stream sets the stream of the following allocations, and returns the one before.
func (m *Machine) Stream(s uint8) uint8 {
	before := m.stream
	m.stream = s
	return before
}

// NoGrad switches gradients off (or on again), and returns whether they were off.
func (m *Machine) NoGrad(off bool) bool {
	before := m.noGrad
	m.noGrad = off
	return before
}

// Empty allocates a contiguous tensor.
func (m *Machine) Empty(op string, d DType, shape ...int64) *Tensor {
	t := m.tensor(d, shape)
	t.stride = contiguous(shape)
	t.store = m.alloc(t.Bytes(), op)
	return t
}

// tensor returns a tensor without storage, held once.
func (m *Machine) tensor(d DType, shape []int64) *Tensor {
	t := m.arena.tensors.take()
	*t = Tensor{machine: m, dtype: d, dims: int8(len(shape)), owners: 1, held: 1, scope: m.scope}
	copy(t.dim[:], shape)
	m.scope.made(t)
	return t
}

// Parameter allocates a weight.
func (m *Machine) Parameter(d DType, trains bool, shape ...int64) *Tensor {
	before := m.Kind(ledger.Weight)
	t := m.Empty("parameter", d, shape...)
	m.Kind(before)
	t.Train(trains)
	return t
}

// MetaParameter is a weight on the meta device: it has no memory until
// AllocStorage gives it some.
func (m *Machine) MetaParameter(d DType, trains bool, shape ...int64) *Tensor {
	t := m.tensor(d, shape)
	t.stride = contiguous(shape)
	t.store = m.alloc(0, "")
	t.Train(trains)
	return t
}

// Train sets whether a leaf needs a gradient.
func (t *Tensor) Train(yes bool) {
	t.needs = yes
	if yes && t.sink == nil {
		t.sink = &Node{machine: t.machine, name: "AccumulateGrad", leaf: t, sequence: last, refs: 1}
	}
}

// ZeroGrad drops the gradient of a leaf.
func (t *Tensor) ZeroGrad() {
	if t.grad != nil {
		t.grad.release()
		t.grad = nil
	}
}

// emptyLike is at::empty_like: dense tensors keep their strides.
func (m *Machine) emptyLike(op string, x *Tensor, d DType) *Tensor {
	t := m.tensor(d, x.Shape())
	if x.isDense() {
		t.stride = x.stride
	} else {
		t.stride = m.permuted(t.Shape(), []*Tensor{x})
	}
	t.store = m.alloc(t.Bytes(), op)
	return t
}

// Handle takes the workspace of cuBLAS, once for each thread.
func (m *Machine) Handle() { m.workspace(&m.blas, m.Device.BlasWorkspace, "cuBLAS workspace") }

// handleLt is Handle for cuBLASLt, which needs a handle of cuBLAS as well.
func (m *Machine) handleLt() {
	m.Handle()
	m.workspace(&m.blasLt, m.Device.BlasLtWorkspace, "cuBLASLt workspace")
}

func (m *Machine) workspace(of *[2]*storage, bytes int64, op string) {
	i := 0
	if m.backward {
		i = 1
	}
	if of[i] == nil {
		kind, module := m.Kind(ledger.Workspace), m.Enter(0)
		of[i] = m.alloc(bytes, op)
		m.Kind(kind)
		m.Enter(module)
	}
}
