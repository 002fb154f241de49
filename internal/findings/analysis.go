package findings

import (
	"sync"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Confidence says how sure something is.
type Confidence string

// The degrees of confidence.
const (
	Certain Confidence = "certain" // the file says so
	Likely  Confidence = "likely"  // several signs agree and none speaks against it
	Guess   Confidence = "guess"   // one sign only
)

// less reports whether c is the weaker confidence.
func (c Confidence) less(d Confidence) bool { return c.rank() < d.rank() }

func (c Confidence) rank() int {
	switch c {
	case Certain:
		return 2
	case Likely:
		return 1
	}
	return 0
}

// weaker returns the weaker of two.
func weaker(a, b Confidence) Confidence {
	if a.less(b) {
		return a
	}
	return b
}

// Analysis computes the findings and holders of one trace. It does not change the
// trace and is safe for use by several goroutines.
type Analysis struct {
	Trace *trace.Trace
	// Exact reports whether bytes are sizes of blocks; otherwise they are what
	// was requested, which is a little less.
	Exact bool
	Steps *Steps

	program *timeline.Annotations
	lives   *blockIndex
	stacks  *stackFacts
	phases  *phases

	once       sync.Once
	categories *categories
}

// New finds the steps of a trace. program has its annotations.
func New(index *timeline.Lifetimes, program *timeline.Annotations) *Analysis {
	t := index.Trace
	a := &Analysis{Trace: t, Exact: index.Exact, lives: newBlockIndex(index), stacks: newStackFacts(t), program: program}
	a.Steps = findSteps(t, program, a.lives, a.stacks)
	a.phases = newPhases(t, program, a.lives, a.stacks, a.Steps)
	return a
}

// Findings are what stands out over the steps.
type Findings struct {
	Leaks  []Leak  // most bytes a step first
	Spikes []Spike // largest first
	// Transient is the part of an ordinary step's peak that does not stay; nil if
	// no step is complete.
	Transient *Transient
}

// Find looks for everything.
func (a *Analysis) Find() *Findings {
	f := &Findings{Leaks: a.Leaks(), Spikes: a.spikes()}
	f.Transient = a.transient(f.Spikes)
	against(f.Spikes, f.Transient)
	return f
}

// Part is the share of one call stack.
type Part struct {
	Stack trace.StackID // trace.NoStack for blocks without frames
	Bytes uint64
	// Blocks is how many blocks that is.
	Blocks int
}

// known returns the stack under which blocks are added up: nobody knows more
// about an empty one than about none.
func known(id trace.StackID) trace.StackID {
	if id == trace.EmptyStack {
		return trace.NoStack
	}
	return id
}

// PeakEvent returns the event after which most memory is active; -1 if it is
// before the first one.
func (a *Analysis) PeakEvent() int {
	peak, at := a.lives.before, -1
	for i, live := range a.lives.live {
		if live > peak {
			peak, at = live, i
		}
	}
	return at
}

// LiveBefore returns what is active before an event.
func (a *Analysis) LiveBefore(event int) uint64 { return a.lives.levelAt(event) }
