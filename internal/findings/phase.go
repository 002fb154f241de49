package findings

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// phase is the part of a step in which something happens.
type phase uint8

const (
	phaseSetup    phase = iota // before the first step
	phaseForward               // in a step, in none of the others
	phaseBackward              // the backward pass
	phaseRecompute
	phaseOptimizer
)

// phases knows where the parts of each step are.
type phases struct {
	stacks *stackFacts
	steps  []Step
	first  int // the first event of the first step; 0 if there are none
	ranges []span
	// optimizer is for each step where its optimizer begins, backward where its
	// backward pass does; never if it has none.
	optimizer, backward []int32
	annotated           []bool  // optimizer is known from an annotation
	outsideModules      []int32 // allocations of the program outside of modules
}

// span is a range of events, the end excluded.
type span struct{ begin, end int }

func newPhases(t *trace.Trace, program *timeline.Annotations, l *blockIndex, f *stackFacts, s *Steps) *phases {
	p := &phases{stacks: f, steps: s.List}
	if len(p.steps) > 0 {
		p.first = p.steps[0].Begin
	}
	for _, r := range program.Ranges {
		if strings.HasPrefix(r.Name, "Optimizer.step#") {
			x := span{after(t, r.Begin), t.Events.Len()}
			if r.End != math.MaxInt64 {
				x.end = after(t, r.End+1)
			}
			p.ranges = append(p.ranges, x)
		}
	}
	slices.SortFunc(p.ranges, func(x, y span) int { return cmp.Compare(x.begin, y.begin) })
	p.optimizer, p.backward = filled(len(p.steps)), filled(len(p.steps))
	p.annotated = make([]bool, len(p.steps))
	for b := range l.allocated() {
		switch f.kind(b.stack) {
		case stackModule, stackBackward, stackRecompute:
			if p.inOptimizer(int(b.born)) {
				p.ranges = nil // the whole step runs inside: the ranges say nothing
			}
		}
	}
	for _, r := range p.ranges {
		if k := s.Of(r.begin); k >= 0 && p.optimizer[k] == never {
			p.optimizer[k], p.annotated[k] = int32(r.begin), true
		}
	}
	k := 0
	for b := range l.allocated() {
		for k < len(p.steps) && p.steps[k].End <= int(b.born) {
			k++
		}
		if k == len(p.steps) {
			break
		}
		if int(b.born) < p.steps[k].Begin {
			continue
		}
		switch f.kind(b.stack) {
		case stackPlain:
			p.outsideModules = append(p.outsideModules, b.born)
		case stackOptimizer:
			if !p.annotated[k] {
				p.optimizer[k] = min(p.optimizer[k], b.born)
			}
		case stackBackward, stackRecompute:
			p.backward[k] = min(p.backward[k], b.born)
		}
	}
	return p
}

func filled(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = never
	}
	return out
}

// phaseAt returns the phase of an event with a stack.
func (p *phases) phaseAt(event int, stack trace.StackID) phase {
	switch p.stacks.kind(stack) {
	case stackOptimizer:
		return phaseOptimizer
	case stackBackward:
		return phaseBackward
	case stackRecompute:
		return phaseRecompute
	}
	if p.inOptimizer(event) {
		return phaseOptimizer
	}
	if event < p.first {
		return phaseSetup
	}
	return phaseForward
}

// OptimizerAt returns the event with which the optimizer of a step begins, by its position in the list of steps; false if the step has none that is known.
func (a *Analysis) OptimizerAt(step int) (event int, ok bool) {
	begin := a.phases.optimizer[step]
	return int(begin), begin != never
}

// FusedOptimizer reports whether frames show an optimizer with one kernel for all that it does, and none of several. Without such frames nobody knows;
// PyTorch's default is several.
func (a *Analysis) FusedOptimizer() bool {
	fused := false
	for id := range a.Trace.Stacks.NumFrames() {
		f := frameOf(a.Trace, trace.FrameID(id))
		if !strings.HasPrefix(f.BelowTorch(), "optim/") {
			continue
		}
		if strings.HasPrefix(f.Name, "_multi_tensor_") || strings.HasPrefix(f.Name, "_single_tensor_") {
			return false
		}
		fused = fused || strings.HasPrefix(f.Name, "_fused_")
	}
	return fused
}

// inOptimizer reports whether an annotation puts an event into an optimizer.
func (p *phases) inOptimizer(event int) bool {
	i, found := slices.BinarySearchFunc(p.ranges, event, func(x span, e int) int { return cmp.Compare(x.begin, e) })
	if !found {
		i--
	}
	return i >= 0 && event < p.ranges[i].end
}

// between reports whether the program itself, outside of modules, allocated
// something between two events: then a block held over that time outlived the
// call of the module that made it.
func (p *phases) between(from, to int32) bool {
	i, _ := slices.BinarySearch(p.outsideModules, from+1)
	return i < len(p.outsideModules) && p.outsideModules[i] < to
}
