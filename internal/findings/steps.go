package findings

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Where steps come from.
const (
	FromProfiler  = "profiler"      // ranges ProfilerStep#n
	FromMetadata  = "user_metadata" // texts that count
	FromOptimizer = "optimizer"     // ranges Optimizer.step
	FromPeriod    = "period"        // the repetition of the allocation stacks
)

// Step is one round of training or serving.
type Step struct {
	// Number is what the file calls it, or its place from 1 on.
	Number int
	// Begin is its first event, End the one after its last.
	Begin, End int
	// Complete is false for a last step that the trace breaks off.
	Complete bool
}

// Steps are the rounds that a program went through, in order. What comes before
// the first is set-up.
type Steps struct {
	Source     string // empty if none were found
	Confidence Confidence
	// Detail says in words how they were found.
	Detail string
	List   []Step
	// Repeats is the share of allocations inside steps whose stack occurs in
	// every complete one; 0 if it was not needed.
	Repeats float64
}

// Complete returns how many steps came to their end.
func (s *Steps) Complete() int {
	n := len(s.List)
	if n > 0 && !s.List[n-1].Complete {
		n--
	}
	return n
}

// Ranges returns the first event of each complete step and the one after its last.
func (s *Steps) Ranges() [][2]int {
	var out [][2]int
	for _, x := range s.List[:s.Complete()] {
		out = append(out, [2]int{x.Begin, x.End})
	}
	return out
}

// Of returns the position in List of the step that an event belongs to, or -1.
func (s *Steps) Of(event int) int {
	i, found := slices.BinarySearchFunc(s.List, event, func(x Step, e int) int { return cmp.Compare(x.Begin, e) })
	if !found {
		i--
	}
	if i < 0 || event >= s.List[i].End {
		return -1
	}
	return i
}

// findSteps asks the surest source first.
func findSteps(t *trace.Trace, program *timeline.Annotations, l *blockIndex, f *stackFacts) *Steps {
	seq := newSequence(t, l, f)
	for _, find := range []func() *Steps{
		func() *Steps { return profilerSteps(t, seq, program) },
		func() *Steps { return metadataSteps(t, seq) },
		func() *Steps { return optimizerSteps(t, seq, program) },
		func() *Steps { return periodSteps(t, l, f, seq) },
	} {
		if s := find(); s != nil {
			return s
		}
	}
	return &Steps{Confidence: Guess, Detail: "no steps: the file marks none, and its allocations do not repeat"}
}

// FirstForward returns the first event that allocates inside a call of an
// nn.Module; the number of events if none does.
func (a *Analysis) FirstForward() int {
	for b := range a.lives.allocated() {
		if a.stacks.kind(b.stack) == stackModule {
			return int(b.born)
		}
	}
	return a.Trace.Events.Len()
}

// From returns the analysis of what comes from an event on, as if all before it
// were set-up: other work than the steps, such as an evaluation, has rounds of
// its own.
func (a *Analysis) From(event int) *Analysis {
	out := &Analysis{Trace: a.Trace, Exact: a.Exact, lives: a.lives, stacks: a.stacks, program: a.program}
	seq := newSequence(a.Trace, a.lives, a.stacks)
	for i := range seq.first(event) {
		seq.tokens[i] = -1
	}
	for _, find := range []func() *Steps{
		func() *Steps { return periodSteps(a.Trace, a.lives, a.stacks, seq) },
		func() *Steps { return roundsOf(a.Trace, a.lives, a.stacks, seq, event) },
		func() *Steps { return &Steps{Confidence: Guess, Detail: "no rounds"} },
	} {
		if out.Steps = find(); out.Steps != nil {
			break
		}
	}
	out.phases = newPhases(a.Trace, a.program, a.lives, a.stacks, out.Steps)
	return out
}

// sequence is the allocations of a trace as tokens: the stack, or where the
// file has none the size.
type sequence struct {
	lives  *blockIndex
	events []int32
	tokens []int32 // -1 where an allocation cannot be told from others
	number int     // of different tokens; they are below it
	sized  bool    // tokens are sizes
}

func newSequence(t *trace.Trace, l *blockIndex, f *stackFacts) *sequence {
	n := l.len() - l.older
	s := &sequence{lives: l, events: make([]int32, n), tokens: make([]int32, n), sized: !f.any}
	byStack := make([]int32, t.Stacks.Len())
	bySize := map[uint64]int32{}
	for i := range n {
		b := l.block(l.older + i)
		s.events[i] = b.born
		switch {
		case s.sized:
			token, ok := bySize[b.size]
			if !ok {
				token = int32(len(bySize))
				bySize[b.size] = token
				s.number++
			}
			s.tokens[i] = token
		case f.kind(b.stack) == stackBackward || f.kinds[b.stack] == stackNone:
			s.tokens[i] = -1
		default:
			if byStack[b.stack] == 0 {
				s.number++
				byStack[b.stack] = int32(s.number)
			}
			s.tokens[i] = byStack[b.stack] - 1
		}
	}
	return s
}

// gone returns when the block of an allocation was free again.
func (s *sequence) gone(i int) int32 { return s.lives.index.Gone[s.lives.index.Older+i] }

// first returns how many allocations come before an event.
func (s *sequence) first(event int) int {
	i, _ := slices.BinarySearch(s.events, int32(min(event, never)))
	return i
}

// after returns the first event of a trace that is not before a time. Times
// rise but for a few microseconds between threads.
func after(t *trace.Trace, time int64) int {
	lo, hi := 0, t.Events.Len()
	for lo < hi {
		mid := (lo + hi) / 2
		if at := t.Events.Time.At(mid); at != trace.NoTime && at < time {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
