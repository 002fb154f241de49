package findings

import (
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Category says what memory is for.
type Category string

// The categories. See the package comment for how they are told apart.
const (
	Parameters     Category = "parameters"
	Gradients      Category = "gradients"
	OptimizerState Category = "optimizer_state"
	Activations    Category = "activations"
	Temporaries    Category = "temporaries"
	Workspace      Category = "workspace"
	Unknown        Category = "unknown"
)

// verdict is the category of a block.
type verdict struct {
	category   Category
	confidence Confidence
}

// categories decides what blocks are for.
type categories struct {
	trace  *trace.Trace
	lives  *blockIndex
	phases *phases
	steps  *Steps
	// sizes are those requested for parameters; gradients have the same.
	sizes map[uint64]bool
	// twins has for the blocks of the last step, from firstTwin on, their
	// counterparts in the step before: the block with the same stack and the same
	// place in the order; -1 if there is none.
	twins     []int32
	firstTwin int32
	// habits has for each stack what its blocks of known lifetime were for.
	habits []habit
}

// habit sums up the blocks of one stack that the program itself allocates in
// steps.
type habit struct {
	activations, temporaries uint64 // bytes
	kept                     int32  // steps of which a block stays
	last                     int32  // of those, plus one
	stay, gone               int32  // blocks
}

func newCategories(a *Analysis) *categories {
	c := &categories{
		trace: a.Trace, lives: a.lives, phases: a.phases, steps: a.Steps,
		sizes: map[uint64]bool{}, habits: make([]habit, a.Trace.Stacks.Len()),
	}
	for b := range c.lives.all() {
		if b.born >= 0 && c.isParameter(b) {
			c.sizes[b.asked] = true
		}
	}
	c.findTwins()
	k := 0
	for b := range c.lives.allocated() {
		for k < len(c.steps.List) && c.steps.List[k].End <= int(b.born) {
			k++
		}
		if k == len(c.steps.List) {
			break
		}
		if int(b.born) < c.steps.List[k].Begin {
			continue
		}
		if c.phases.phaseAt(int(b.born), b.stack) != phaseForward {
			continue
		}
		h := &c.habits[b.stack]
		switch {
		case c.stays(b, k):
			h.stay++
			if h.last != int32(k+1) {
				h.kept, h.last = h.kept+1, int32(k+1)
			}
		case b.freed != never:
			h.gone++
			if v := c.forward(b, k); v.category == Temporaries {
				h.temporaries += b.size
			} else {
				h.activations += b.size
			}
		}
	}
	return c
}

// findTwins pairs the blocks of the last two steps.
func (c *categories) findTwins() {
	n := len(c.steps.List)
	if n < 2 {
		return
	}
	before := make([][]int32, c.trace.Stacks.Len()) // of each stack the blocks of the step before
	paired := make([]int32, len(before))            // how many of them have a twin
	last := c.steps.List[n-1]
	for b := range c.lives.allocated() {
		if int(b.born) < c.steps.List[n-2].Begin {
			continue
		}
		if int(b.born) >= last.End {
			break
		}
		stack := known(b.stack)
		if int(b.born) < last.Begin {
			before[stack] = append(before[stack], b.id)
			continue
		}
		if len(c.twins) == 0 {
			c.firstTwin = b.id
		}
		twin := int32(-1)
		if k := paired[stack]; int(k) < len(before[stack]) {
			twin = before[stack][k]
			paired[stack]++
		}
		c.twins = append(c.twins, twin)
	}
}

// twin returns the counterpart of a block of the last step.
func (c *categories) twin(b *block) (block, bool) {
	i := int(b.id - c.firstTwin)
	if i < 0 || i >= len(c.twins) || c.twins[i] < 0 {
		return block{}, false
	}
	return c.lives.block(int(c.twins[i])), true
}

// isParameter reports whether a block comes from set-up and stays as long as the
// steps go.
func (c *categories) isParameter(b *block) bool {
	n := len(c.steps.List)
	return n > 0 && int(b.born) < c.steps.List[0].Begin && c.lasts(b) && c.phases.stacks.kinds[b.stack] != stackModule
}

// lasts reports whether a block stays to the end of the last complete step, or of
// the trace if no step is complete.
func (c *categories) lasts(b *block) bool {
	n := c.steps.Complete()
	if n == 0 {
		return b.gone == never
	}
	return int(b.gone) >= c.steps.List[n-1].End
}

// outlives reports whether a block is still there when a step has ended.
func (c *categories) outlives(b *block, step int) bool {
	return step < len(c.steps.List) && c.steps.List[step].Complete && int(b.gone) >= c.steps.List[step].End
}

// stays reports whether a block outlives its step and then either the next one
// or the trace.
func (c *categories) stays(b *block, step int) bool {
	return c.outlives(b, step) && (b.gone == never || c.outlives(b, step+1))
}

// categoryOf returns what a block is for.
func (c *categories) categoryOf(b *block) verdict {
	marks := c.phases.stacks.marks[b.stack]
	if marks&markWorkspace != 0 && c.lasts(b) {
		return verdict{Workspace, Certain}
	}
	if b.born < 0 {
		return c.older(b)
	}
	if len(c.steps.List) == 0 {
		if marks&markMove != 0 && b.gone == never {
			return verdict{Parameters, Likely}
		}
		return verdict{Unknown, Guess}
	}
	if int(b.born) < c.steps.List[0].Begin {
		return c.setup(b, marks)
	}
	step := c.steps.Of(int(b.born))
	if step < 0 {
		return verdict{Unknown, Guess} // after the steps
	}
	if b.freed == never {
		// The trace ends too early to decide, but the step before may.
		if twin, ok := c.twin(b); ok && twin.freed != never {
			v := c.within(&twin, step-1)
			return verdict{v.category, weaker(v.confidence, Likely)}
		}
	}
	return c.within(b, step)
}

// within decides for a block of a step.
func (c *categories) within(b *block, step int) verdict {
	switch c.phases.phaseAt(int(b.born), b.stack) {
	case phaseOptimizer:
		return c.optimizer(b, step)
	case phaseBackward:
		return c.backward(b, step)
	case phaseRecompute:
		if c.stays(b, step) {
			return verdict{Workspace, Guess}
		}
		return verdict{Activations, Likely}
	}
	return c.forward(b, step)
}

// older decides for a block whose allocation the trace does not have. If the
// ring of events overflowed, the file still has its stack.
func (c *categories) older(b *block) verdict {
	if b.stack <= trace.EmptyStack || !c.lasts(b) {
		return verdict{Unknown, Guess}
	}
	switch kind := c.phases.stacks.kinds[b.stack]; {
	case kind == stackOptimizer:
		return verdict{OptimizerState, Likely}
	case c.phases.stacks.marks[b.stack]&markMove != 0:
		return verdict{Parameters, Likely}
	}
	return verdict{Unknown, Guess}
}

func (c *categories) setup(b *block, marks frameMark) verdict {
	switch {
	case c.lasts(b) && marks&markMove != 0:
		return verdict{Parameters, Certain}
	case c.lasts(b) && c.phases.stacks.kinds[b.stack] == stackModule:
		return verdict{Workspace, Likely} // of a pass before the first step
	case c.lasts(b):
		return verdict{Parameters, Likely}
	case int(b.gone) < c.steps.List[0].End:
		return verdict{Temporaries, Likely}
	}
	return verdict{Unknown, Guess}
}

func (c *categories) optimizer(b *block, step int) verdict {
	end := c.steps.List[step].End
	switch {
	case c.outlives(b, step):
		return verdict{OptimizerState, Certain}
	case b.gone != never && int(b.gone) < end:
		return verdict{Temporaries, Certain}
	}
	return verdict{OptimizerState, Guess} // the trace ends too early to decide
}

func (c *categories) backward(b *block, step int) verdict {
	begins := c.phases.optimizer[step]
	if begins < b.born {
		begins = never // a backward pass after the optimizer: nothing to go by
	}
	sized := c.sizes[b.asked]
	switch {
	case c.stays(b, step):
		// Gradients that are set to zero instead of given up stay as well, and
		// have the sizes of parameters.
		if sized {
			return verdict{Gradients, Likely}
		}
		return verdict{Workspace, Likely}
	case begins != never && b.freed > begins:
		if c.phases.annotated[step] && sized {
			return verdict{Gradients, Certain}
		}
		return verdict{Gradients, Likely}
	case b.freed != never:
		if begins != never {
			return verdict{Temporaries, Certain}
		}
		return verdict{Temporaries, Likely}
	case sized:
		return verdict{Gradients, Guess}
	}
	return verdict{Temporaries, Guess}
}

// forward decides for a block that the program itself allocated, mostly in a
// module.
func (c *categories) forward(b *block, step int) verdict {
	s := c.steps.List[step]
	if c.stays(b, step) {
		// One that every step leaves behind is a result that the program
		// keeps; one that was needed once is a workspace.
		switch h := c.habits[b.stack]; {
		case h.kept > 1:
			return verdict{Activations, Likely}
		case h.gone > h.stay || c.outlives(b, step+1):
			return verdict{Workspace, Likely}
		}
		return verdict{Workspace, Guess}
	}
	if b.freed == never || int(b.freed) >= s.End && !s.Complete {
		return c.byHabit(b)
	}
	backward := c.phases.backward[step]
	by := c.trace.Events.Stack.At(int(b.freed))
	switch {
	case !c.phases.stacks.any:
		return c.withoutStacks(b, step)
	case backward != never && backward > b.born && b.freed > backward:
		if c.phases.stacks.kind(by) == stackBackward || c.phases.stacks.kind(by) == stackRecompute {
			return verdict{Activations, Certain}
		}
		return verdict{Activations, Likely} // held to the end of the step
	case backward != never && backward > b.born:
		return verdict{Temporaries, Certain}
	case c.phases.stacks.kind(by) == stackModule && !c.phases.between(b.born, b.freed):
		return verdict{Temporaries, Likely}
	}
	return verdict{Activations, Likely} // a result that the program held
}

// byHabit decides for a block whose end the trace does not have, by what the
// others of its stack were for.
func (c *categories) byHabit(b *block) verdict {
	if h := c.habits[b.stack]; h.temporaries > h.activations {
		return verdict{Temporaries, Guess}
	}
	return verdict{Activations, Guess}
}

// withoutStacks decides by the optimizer alone.
func (c *categories) withoutStacks(b *block, step int) verdict {
	begins := c.phases.optimizer[step]
	switch {
	case begins == never || begins < b.born || b.freed < begins:
		return verdict{Activations, Guess}
	case c.sizes[b.asked]:
		return verdict{Gradients, Guess}
	}
	return verdict{Activations, Guess}
}

// Category returns what one block is for. Blocks are numbered as in
// timeline.Lifetimes: those older than the trace first, then one for each alloc
// event, in order.
func (a *Analysis) Category(block int) (Category, Confidence) {
	a.once.Do(func() { a.categories = newCategories(a) })
	b := a.lives.block(block)
	v := a.categories.categoryOf(&b)
	return v.category, v.confidence
}

// CategoryOf returns what block i of lifetimes is for. Blocks of which the trace
// has only the free are unknown.
func (a *Analysis) CategoryOf(lives *timeline.Lifetimes, i int) (Category, Confidence) {
	block := i
	if i >= lives.Older-lives.Found {
		block -= lives.Found
	}
	found := i >= lives.Older-lives.Found && i < lives.Older
	if found || a.Blocks()+lives.Found != lives.Len() { // the second never, or the numbers would be mixed up
		return Unknown, Guess
	}
	return a.Category(block)
}

// Blocks returns the number of blocks.
func (a *Analysis) Blocks() int { return a.lives.len() }

// Categories returns all categories, in the order in which memory is mostly
// there.
func Categories() []Category {
	return []Category{Parameters, Gradients, OptimizerState, Activations, Temporaries, Workspace, Unknown}
}
