package dry

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// Version is that of the files that are read.
const Version = 1

// Header is the first line of a file.
type Header struct {
	Version  int      `json:"ashlar_dry"`
	Torch    string   `json:"torch"`
	CUDA     string   `json:"cuda"`
	CuDNN    int      `json:"cudnn"`
	Device   Device   `json:"device"`
	Argv     []string `json:"argv"`
	Steps    int      `json:"steps"`    // asked for
	Settings string   `json:"settings"` // PYTORCH_CUDA_ALLOC_CONF of the script
	World    World    `json:"world"`
}

// Device is the card that the script was told it has.
type Device struct {
	Name       string `json:"name"`
	Total      int64  `json:"total_bytes"`
	Capability []int  `json:"capability"`
	Processors int64  `json:"processors"`
	Threads    int64  `json:"threads"` // of a processor
	Present    bool   `json:"present"` // it was in the machine
}

// World says how many ranks the script thinks there are, and which it is.
type World struct {
	Size int `json:"size"`
	Rank int `json:"rank"`
}

// Recording is a dry run as its file has it.
type Recording struct {
	Header
	Notes   []Note // what was answered for want of bytes
	Unknown []Note // ops that the recorder does not know
	// Compiled is how many graphs of torch.compile ran as Inductor compiled them.
	Compiled int
	Ended    string // why the run ended: "steps", "passes", "script", "interrupted" or "error: ..."
	Saves    []string
	// Cut says why the file ends before its end; empty if it does not.
	Cut    string
	Events int // lines of births, deaths, calls and moments

	frames   []timeline.Frame
	stacks   [][]int32
	kinds    []kind
	storages []storage
	events   []event
	ids      []int32 // storages of calls and classes
	backward bool    // there is a backward pass
	forward  bool    // forward passes are marked
}

// Note is something that a script asked and that has no answer without bytes.
type Note struct {
	Text  string `json:"text"`
	Count int    `json:"count"`
	Where string `json:"where"` // the script's line of the first
}

// Op is an op that nobody knows.
type Op struct {
	Name  string `json:"op"`
	Count int    `json:"count"`
	Where string `json:"where"`
}

// kind is a kind of call.
type kind struct {
	defined bool
	op      string // as the file has it
	in, out []eager.Meta
	args    []any
	kwargs  map[string]any

	workspaces []int64 // of each pass of a convolution, by cuDNN; -1: it was not asked
}

// sparse returns the size that the sparse results of a call would have if they
// were dense. PyTorch tells nothing of what a sparse tensor without bytes holds.
func (k *kind) sparse() int64 {
	var total int64
	for _, m := range k.out {
		if m.Stride != nil || len(m.Shape) == 0 {
			continue
		}
		n := m.DType.Size()
		for _, d := range m.Shape {
			n = min(n, maxBytes/max(d, 1)) * d
		}
		total += n
	}
	return total
}

// storage is the memory behind tensors.
type storage struct {
	bytes int64
	cuda  int16 // number of the device; -1 if it is on none
}

// What an event is.
const (
	called byte = iota
	born
	died
	resized
	classed
	moment
)

// event is a line of the file.
type event struct {
	what   byte
	thread uint8
	stream uint8
	// Of a call the kind and the stack; of a birth and a death the storage; of a
	// resize the storage before and after it; of a class the ledger's kind and how
	// many storages are of it; of a moment its number and its value.
	a, b int32
	at   int64 // of a call and a class: where its storages begin
}

// The moments.
const (
	forwardBegin int32 = iota
	forwardEnd
	backwardBegin
	backwardEnd
	optimizerBegin
	optimizerEnd
	emptyCache
	stepDone
)

// where names the script's own line of a stack: the innermost frame of the
// user's, or the innermost one that is not torch's.
func (r *Recording) where(stack int32) string {
	frames := r.framesOf(stack)
	site, ok := timeline.SiteOfFrames(frames)
	switch {
	case !ok && len(r.stacks) > 0 && stack >= 0:
		return "autograd" // no line of the script: it runs in a thread of its own
	case !ok:
		return ""
	case site.HasUser:
		return site.User.String()
	}
	return site.Inner.String()
}

// framesOf returns the frames of a stack, innermost first.
func (r *Recording) framesOf(stack int32) []timeline.Frame {
	if stack < 0 || int(stack) >= len(r.stacks) {
		return nil
	}
	out := make([]timeline.Frame, 0, len(r.stacks[stack]))
	for _, f := range r.stacks[stack] {
		if f := r.frames[f]; len(out) > 0 || !isDispatch(f) {
			out = append(out, f)
		}
	}
	return out
}

// isDispatch reports whether a frame is one that PyTorch puts between an op and
// the recorder.
func isDispatch(f timeline.Frame) bool {
	return f.Name == "_fn" && strings.HasSuffix(f.Filename, "torch/_dynamo/eval_frame.py") || f.Name == "inner" && strings.HasSuffix(f.Filename, "torch/_compile.py")
}

// Error is what is wrong with a file, and where.
type Error struct {
	Line int
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }
