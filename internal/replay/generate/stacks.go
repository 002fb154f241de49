package generate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ashlar-mem/ashlar/trace"
)

// stackSource gives each call its stack: the recorded one, or a made-up one.
type stackSource struct {
	strings *trace.Strings
	table   *trace.Stacks

	made  []trace.StackID                 // empty: the recorded ones are kept
	fixed map[trace.StackID]trace.StackID // recorded -> made-up; nil: taken in turn
}

// newStackSource makes the stacks that the options ask for.
func newStackSource(t *trace.Trace, o Options) *stackSource {
	s := &stackSource{strings: copyStrings(t.Strings), table: t.Stacks}
	if o.StackDepth == 0 && o.DistinctStacks == 0 {
		return s
	}
	used, depth := usedStacks(t)
	n := o.DistinctStacks
	if n == 0 {
		n = max(1, len(used))
		s.fixed = make(map[trace.StackID]trace.StackID, len(used))
	}
	if o.StackDepth > 0 {
		depth = o.StackDepth
	}
	s.table = trace.NewStacks()
	s.makeStacks(n, depth, rand.New(rand.NewPCG(o.Seed, 1)))
	if s.fixed != nil {
		for i, id := range used {
			s.fixed[id] = s.made[i]
		}
	}
	return s
}

// copyStrings copies a table; the numbers stay.
func copyStrings(from *trace.Strings) *trace.Strings {
	to := &trace.Strings{}
	for id := range from.Len() {
		to.Add(from.Text(trace.StringID(id + 1)))
	}
	return to
}

// usedStacks lists the stacks of events, and their usual depth.
func usedStacks(t *trace.Trace) (used []trace.StackID, depth int) {
	seen := map[trace.StackID]bool{}
	var depths []int
	for i := range t.Events.Len() {
		id := t.Events.Stack.At(i)
		if id > trace.EmptyStack && !seen[id] {
			seen[id] = true
			used = append(used, id)
			depths = append(depths, len(t.Stacks.Frames(id)))
		}
	}
	if len(depths) == 0 {
		return nil, 10
	}
	slices.Sort(depths)
	return used, depths[len(depths)/2]
}

// makeStacks makes n different stacks. As in real programs they begin alike:
// the outer quarter of the frames is the same in all, and every further level
// has a choice of few.
func (s *stackSource) makeStacks(n, depth int, rng *rand.Rand) {
	same := depth / 4
	enough := math.Pow(4*float64(n), 1/float64(depth-same))
	choices := int(math.Ceil(max(enough, math.Sqrt(float64(n)))))
	frames := make([]trace.FrameID, depth)
	for len(s.made) < n {
		for level := range depth {
			choice := 0
			if level >= same {
				choice = rng.IntN(choices)
			}
			frames[depth-1-level] = s.frame(level, choice)
		}
		before := s.table.Len()
		if id := s.table.Add(frames); s.table.Len() > before {
			s.made = append(s.made, id)
		}
	}
}

var functions = []string{"forward", "_call_impl", "_wrapped_call_impl", "backward", "step", "train_step", "run", "apply"}

func (s *stackSource) frame(level, choice int) trace.FrameID {
	return s.table.AddFrame(trace.Frame{
		Name: s.strings.Add(functions[(level+choice)%len(functions)]),
		File: s.strings.Add(fmt.Sprintf("generated/level_%02d/module_%03d.py", level, choice/8)),
		Line: int64(10 + 17*level + 3*(choice%8)),
	})
}

// next returns the stack of a call.
func (s *stackSource) next(recorded trace.StackID, call int64, device int) trace.StackID {
	if len(s.made) == 0 {
		return recorded
	}
	if s.fixed == nil {
		return s.made[(call+int64(device))%int64(len(s.made))]
	}
	if id, ok := s.fixed[recorded]; ok {
		return id
	}
	return min(recorded, trace.EmptyStack)
}
