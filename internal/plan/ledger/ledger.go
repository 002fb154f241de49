package ledger

import (
	"math"
	"slices"
)

// Kind is what a tensor is for.
type Kind uint8

// The kinds. What is reported of a peak is the sum of each.
const (
	Temporary  Kind = iota // lives within an op or a few of them
	Weight                 // parameters
	Buffer                 // what a module keeps beside its parameters
	Master                 // fp32 copies of the parameters
	Gradient               // of a parameter
	Optimizer              // moments and step counters
	Activation             // kept for the backward pass
	Loss                   // logits, their casts and their gradients
	Cast                   // of a weight, under autocast
	Cache                  // keys, values and states of generation
	Workspace              // of a library, e.g. cuBLAS
	Input                  // token ids, labels, masks, pictures
	Collective             // buckets and gathered parameters
	Copy                   // of the state, while it is saved
	kinds
)

var kindNames = [kinds]string{
	"temporaries", "parameters", "buffers", "master weights", "gradients", "optimizer state",
	"activations", "loss", "weight casts", "cache", "workspace", "inputs", "collectives", "saved copies",
}

// Kinds lists all kinds.
func Kinds() []Kind {
	out := make([]Kind, kinds)
	for i := range out {
		out[i] = Kind(i)
	}
	return out
}

func (k Kind) String() string { return kindNames[k] }

// Tensor is one allocation.
type Tensor struct {
	Bytes  int64
	Birth  int32 // event
	Death  int32 // event, or Lives
	Op     Name  // what allocated it
	Module Name  // where in the model
	Kind   Kind
	Stream uint8
}

// Lives is the Death of a tensor that is there at the end.
const Lives = -1

// EmptyCache is the event of a call of torch.cuda.empty_cache.
const EmptyCache = math.MinInt32

// Name stands for a string of the ledger.
type Name int32

// Phase is a part of a run. It lasts until the next one begins.
type Phase struct {
	Name  string // build, forward, loss, backward, optimizer, save, evaluate, prefill, decode
	Step  int    // of training, or the number of the decoded token; from 1 on
	First int    // event
}

// Term is a part of a peak that is not certain: the bytes that the peak may be
// lower or higher by because of it.
type Term struct {
	Name      string
	Low, High int64
	// Reserved: what is allocated is certain; it is the memory that the allocator
	// keeps for it that is not.
	Reserved bool
}

// Ledger is a run's allocations and frees.
type Ledger struct {
	Tensors []Tensor
	// Events are in order: t is the birth of tensor t, ^t its death, and EmptyCache
	// a call of empty_cache.
	Events []int32
	Phases []Phase
	// Whole: the peaks that are reported are those of the whole run, not of its
	// last step.
	Whole bool
	// Uncertain are parts of the run that whoever wrote it is not sure of.
	Uncertain []Term
	// Watch, if there is one, is told now and then how many events there are. It
	// may panic to end a run that has become too long.
	Watch func(events int)

	names []string
	index map[string]Name
}

// New returns an empty ledger.
func New() *Ledger {
	l := &Ledger{index: map[string]Name{}}
	l.Name("")
	return l
}

// Name returns the name that stands for s.
func (l *Ledger) Name(s string) Name {
	if n, ok := l.index[s]; ok {
		return n
	}
	n := Name(len(l.names))
	l.names = append(l.names, s)
	l.index[s] = n
	return n
}

// Text is what a name stands for.
func (l *Ledger) Text(n Name) string { return l.names[n] }

// Begin starts a phase.
func (l *Ledger) Begin(name string, step int) {
	l.Phases = append(l.Phases, Phase{Name: name, Step: step, First: len(l.Events)})
}

// Alloc enters the birth of a tensor and returns its number.
func (l *Ledger) Alloc(t Tensor) int32 {
	id := int32(len(l.Tensors))
	t.Birth, t.Death = int32(len(l.Events)), Lives
	l.Tensors = append(grown(l.Tensors), t)
	l.Events = append(grown(l.Events), id)
	if l.Watch != nil && id%watchEvery == 0 {
		l.Watch(len(l.Events))
	}
	return id
}

// watchEvery is how many tensors lie between two calls of Watch.
const watchEvery = 1 << 14

// grown doubles a full slice: append's own steps are smaller, which costs
// more copies in runs of some hundred thousand events.
func grown[T any](s []T) []T {
	if len(s) == cap(s) {
		return slices.Grow(s, max(len(s), firstRoom))
	}
	return s
}

// firstRoom is enough for the small runs.
const firstRoom = 1 << 12

// Expect grows the ledger for what was entered since an event to come so many times
// more.
func (l *Ledger) Expect(since, times int) {
	events := len(l.Events) - since
	l.Events = slices.Grow(l.Events, events*times)
	l.Tensors = slices.Grow(l.Tensors, events/2*times)
}

// Free enters the death of a tensor.
func (l *Ledger) Free(id int32) {
	if l.Tensors[id].Death != Lives {
		panic("ledger: a tensor was freed twice")
	}
	l.Tensors[id].Death = int32(len(l.Events))
	l.Events = append(grown(l.Events), ^id)
}

// EmptyCache enters a call of torch.cuda.empty_cache.
func (l *Ledger) EmptyCache() { l.Events = append(grown(l.Events), EmptyCache) }
