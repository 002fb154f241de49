package ledger

import "github.com/ashlar-mem/ashlar/driver/sim"

// External memory is what the driver and the libraries of NVIDIA take while a
// run goes on, from the same address space as PyTorch gets its segments.
//
// It is none of what PyTorch counts. It matters because best fit prefers lower
// addresses among equal blocks: what another took decides where the next segment
// goes, and so which block a later request meets. A small model, with segments of
// 2 MiB, may reserve a tenth more or less for it.
//
// The rules were read off traces of the system calls of 13 runs of eleven small
// models (H200, driver 580.159.04, CUDA 13, PyTorch 2.11). They predict 142 of
// the 147 pieces of memory that these took while they ran, and none that was not
// taken:
//
//   - The first kernel that can print or fail an assertion brings a buffer of
//     8.25 MiB for its messages.
//   - The first value that the host reads back brings a page of 2 MiB to stage it.
//   - The first handle of cuBLAS brings a page; that one and every further one
//     64 MiB more.
//   - The first use of cuDNN on a thread brings four pages; autograd has a thread
//     of its own. The first of all brings the page to stage, if it is not there,
//     and for a convolution before cuBLAS the page of its first handle. Then its
//     libraries are mapped, 344 MiB of the host's addresses in three pieces.
//   - Kernels are loaded when they are first called, into pages of 2 MiB. Sizes
//     of kernels are not known here; in the traces the page after those above
//     comes when about 19 kinds of ops have run and cuBLAS is there. Five runs
//     took one more page later, which is not predicted.
//
// What the rest of the process maps decides too, and no plan knows it: whether a
// chunk finds room between libraries depends on the addresses that the kernel
// has drawn for them.

// External is external memory that is taken before the birth of a tensor.
type External struct {
	Tensor int32
	sim.ExternalRange
}

// Externals are in the order of births.
type Externals []External

// Before takes what is taken before a birth, and forgets it. Births must come in
// order.
func (x *Externals) Before(tensor int32, dev *sim.Device) error {
	for len(*x) > 0 && (*x)[0].Tensor <= tensor {
		if err := dev.TakeExternal((*x)[0].ExternalRange); err != nil {
			return err
		}
		*x = (*x)[1:]
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

// effect is what an op does as far as external memory goes.
type effect uint8

const (
	seen    effect = 1 << iota // some tensor before was of this op
	asserts                    // its kernel can print or fail an assertion
	reads                      // the host may read its result
	handle                     // makes a handle of cuBLAS
	cudnn                      // calls cuDNN
	convolves
)

// effects are those of ops that have one, by the names that plan/eager gives
// them. Casts and powers were seen to bring the buffer for messages; the others
// assert that their indices are in range.
var effects = map[string]effect{
	"to": asserts, "pow": asserts, "embedding": asserts, "index": asserts, "nll_loss": asserts,
	"all": reads, "any": reads, "eq": reads, "ne": reads,
	"cuBLAS workspace":         handle,
	"cudnn_attention":          cudnn,
	"cudnn_attention_backward": cudnn,
	"cudnn_convolution":        cudnn | convolves,
	// Only if the convolution was cuDNN's; see inLibrary.
	"convolution_backward": cudnn | convolves,
	// By the names of ATen, which dry runs have.
	"nll_loss_forward": asserts, "nll_loss2d_forward": asserts,
	"convolution":                                  cudnn | convolves,
	"_scaled_dot_product_cudnn_attention":          cudnn,
	"_scaled_dot_product_cudnn_attention_backward": cudnn,
	"_cudnn_rnn":                                   cudnn,
	"_cudnn_rnn_backward":                          cudnn,
}

// External predicts the external memory of a run. All of it comes with the first
// step, or with what is computed up to the first token.
func (l *Ledger) External() Externals {
	p := process{ledger: l}
	phases := l.Phases
	backward := false
	for i := range l.Tensors {
		for len(phases) > 0 && phases[0].First <= int(l.Tensors[i].Birth) {
			if phases[0].Step > 1 {
				return p.out
			}
			backward = phases[0].Name == Backward
			phases = phases[1:]
		}
		p.birth(int32(i), backward)
	}
	return p.out
}

// process is the state of a process that runs a ledger.
type process struct {
	ledger *Ledger
	ops    []effect // by name
	out    Externals
	kinds  int // of ops that were called

	messages, staged, blas, convolved, mapped, loaded bool

	cudnn [2]bool // on the program's thread and on autograd's
}

// take enters memory of the device that is taken before a birth.
func (p *process) take(before int32, bytes uint64) { p.enter(before, sim.ExternalRange{Bytes: bytes}) }

func (p *process) enter(before int32, t sim.ExternalRange) {
	if int(before) < len(p.ledger.Tensors) {
		p.out = append(p.out, External{before, t})
	}
}

// op is the effect of an op.
func (p *process) op(name Name) *effect {
	for int(name) >= len(p.ops) {
		p.ops = append(p.ops, effects[p.ledger.Text(Name(len(p.ops)))])
	}
	return &p.ops[name]
}

func (p *process) birth(i int32, backward bool) {
	t := &p.ledger.Tensors[i]
	op := p.op(t.Op)
	if *op&handle != 0 {
		if !p.blas && !p.convolved {
			p.take(i, pageBytes)
		}
		p.take(i, handleBytes)
		p.blas = true
	}
	// A kernel runs when its result has been allocated.
	if *op&asserts != 0 && !p.messages {
		p.messages = true
		p.take(i+1, messageBytes)
	}
	if *op&reads != 0 && t.Bytes == 1 && !p.staged {
		p.staged = true
		p.take(i+1, pageBytes)
	}
	if *op&cudnn != 0 {
		p.inLibrary(i, *op, backward)
	}
	if *op&seen == 0 {
		*op |= seen
		p.load(i, *op)
	}
}

// load is the first call of an op.
func (p *process) load(i int32, op effect) {
	p.kinds++
	if p.kinds >= loadedOps && p.blas && !p.loaded && op&handle == 0 {
		p.loaded = true
		p.take(i+1, pageBytes)
	}
}

// inLibrary is a call of cuDNN. It takes its memory after its results have been
// allocated and before its workspace, which is the last of a call's tensors.
func (p *process) inLibrary(i int32, op effect, backward bool) {
	thread := 0
	if backward {
		thread = 1
	}
	if p.cudnn[thread] || op&convolves != 0 && backward && !p.convolved {
		return
	}
	if p.same(i, i+1) && p.same(i, i+2) {
		return
	}
	p.cudnn[thread] = true
	n := cudnnPages
	if !p.staged {
		p.staged = true
		n++
	}
	if op&convolves != 0 && !p.convolved {
		p.convolved = true
		if !p.blas {
			n++
		}
	}
	for range n {
		p.take(i+1, pageBytes)
	}
	if !p.mapped {
		p.mapped = true
		for _, bytes := range cudnnLibraries {
			p.enter(i+1, sim.ExternalRange{Bytes: bytes, Host: true})
		}
	}
}

// same reports whether two tensors are of the same op.
func (p *process) same(i, j int32) bool {
	return int(j) < len(p.ledger.Tensors) && p.ledger.Tensors[i].Op == p.ledger.Tensors[j].Op
}
