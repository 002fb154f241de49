package outside

import (
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Taking is what is taken before the birth of a tensor.
type Taking struct {
	Tensor int32
	sim.Taking
}

// Takings are in the order of births.
type Takings []Taking

// Before takes what is taken before a birth, and forgets it. Births must come in
// order.
func (t *Takings) Before(tensor int32, dev *sim.Device) error {
	for len(*t) > 0 && (*t)[0].Tensor <= tensor {
		if err := dev.Take((*t)[0].Taking); err != nil {
			return err
		}
		*t = (*t)[1:]
	}
	return nil
}

const (
	pageBytes    = 2 << 20
	messageBytes = 8452 << 10
	handleBytes  = 64 << 20
	cudnnPages   = 4
	// loadedOps is how many kinds of ops fill the pages for kernels that are there
	// from the start. Between 15 and 22 the results are the same.
	loadedOps = 19
)

// cudnnLibraries are the mappings of the libraries that cuDNN loads when it is
// first used.
var cudnnLibraries = []uint64{253780528, 69210648, 37775008}

// does is what an op does as far as it matters here.
type does uint8

const (
	seen    does = 1 << iota // some tensor before was of this op
	asserts                  // its kernel can print or fail an assertion
	reads                    // the host may read its result
	handle                   // makes a handle of cuBLAS
	cudnn                    // calls cuDNN
	convolves
)

// ops are those that matter, by the names that plan/eager gives them. Casts and
// powers were seen to bring the buffer for messages; the others assert that their
// indices are in range.
var ops = map[string]does{
	"to": asserts, "pow": asserts, "embedding": asserts, "index": asserts, "nll_loss": asserts,
	"all": reads, "any": reads, "eq": reads, "ne": reads,
	"cuBLAS workspace":         handle,
	"cudnn_attention":          cudnn,
	"cudnn_attention_backward": cudnn,
	"cudnn_convolution":        cudnn | convolves,
	// Only if the convolution was cuDNN's; see call.
	"convolution_backward": cudnn | convolves,
}

// Of finds what is taken beside a planned run. All of it comes with the first
// step, or with what is computed up to the first token.
func Of(l *ledger.Ledger) Takings {
	r := run{l: l}
	phases := l.Phases
	backward := false
	for i := range l.Tensors {
		for len(phases) > 0 && phases[0].First <= int(l.Tensors[i].Birth) {
			if phases[0].Step > 1 {
				return r.out
			}
			backward = phases[0].Name == "backward"
			phases = phases[1:]
		}
		r.birth(int32(i), backward)
	}
	return r.out
}

// run is the state of a process.
type run struct {
	l     *ledger.Ledger
	ops   []does // by name
	out   Takings
	kinds int // of ops that were called

	messages, staged, blas, convolved, mapped, loaded bool

	cudnn [2]bool // on the program's thread and on autograd's
}

// take enters memory of the device that is taken before a birth.
func (r *run) take(before int32, bytes uint64) { r.enter(before, sim.Taking{Bytes: bytes}) }

func (r *run) enter(before int32, t sim.Taking) {
	if int(before) < len(r.l.Tensors) {
		r.out = append(r.out, Taking{before, t})
	}
}

// op is what the op of a tensor does.
func (r *run) op(name ledger.Name) *does {
	for int(name) >= len(r.ops) {
		r.ops = append(r.ops, ops[r.l.Text(ledger.Name(len(r.ops)))])
	}
	return &r.ops[name]
}

func (r *run) birth(i int32, backward bool) {
	t := &r.l.Tensors[i]
	op := r.op(t.Op)
	if *op&handle != 0 {
		if !r.blas && !r.convolved {
			r.take(i, pageBytes)
		}
		r.take(i, handleBytes)
		r.blas = true
	}
	// A kernel runs when its result has been allocated.
	if *op&asserts != 0 && !r.messages {
		r.messages = true
		r.take(i+1, messageBytes)
	}
	if *op&reads != 0 && t.Bytes == 1 && !r.staged {
		r.staged = true
		r.take(i+1, pageBytes)
	}
	if *op&cudnn != 0 {
		r.inLibrary(i, *op, backward)
	}
	if *op&seen == 0 {
		*op |= seen
		r.load(i, *op)
	}
}

// load is the first call of an op.
func (r *run) load(i int32, op does) {
	r.kinds++
	if r.kinds >= loadedOps && r.blas && !r.loaded && op&handle == 0 {
		r.loaded = true
		r.take(i+1, pageBytes)
	}
}

// inLibrary is a call of cuDNN. It takes its memory after its results have been
// allocated and before its workspace, which is the last of a call's tensors.
func (r *run) inLibrary(i int32, op does, backward bool) {
	thread := 0
	if backward {
		thread = 1
	}
	if r.cudnn[thread] || op&convolves != 0 && backward && !r.convolved {
		return
	}
	if r.same(i, i+1) && r.same(i, i+2) {
		return
	}
	r.cudnn[thread] = true
	n := cudnnPages
	if !r.staged {
		r.staged = true
		n++
	}
	if op&convolves != 0 && !r.convolved {
		r.convolved = true
		if !r.blas {
			n++
		}
	}
	for range n {
		r.take(i+1, pageBytes)
	}
	if !r.mapped {
		r.mapped = true
		for _, bytes := range cudnnLibraries {
			r.enter(i+1, sim.Taking{Bytes: bytes, Host: true})
		}
	}
}

// same tells whether two tensors are of the same op.
func (r *run) same(i, j int32) bool {
	return int(j) < len(r.l.Tensors) && r.l.Tensors[i].Op == r.l.Tensors[j].Op
}
