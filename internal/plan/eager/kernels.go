package eager

// Kernels knows what PyTorch's CUDA kernels allocate, op by op.
type Kernels struct{ device Device }

// NewKernels returns the kernels of a device.
func NewKernels(d Device) *Kernels { return &Kernels{d} }

// Call is one call of an op.
type Call struct {
	Op      string // aten.addmm.default
	In, Out []Meta
	Fresh   []bool // of Out: the storage is new with this call
	Args    []any  // as in the ledger; a tensor is a Ref
	Kwargs  map[string]any
	Thread  int // 1: autograd's
	Stream  int
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
	for i, fresh := range c.Fresh {
		if fresh {
			moves = append(moves, Move{Bytes: c.Out[i].Bytes, Out: i, Free: -1})
		}
	}
	return moves, true
}
