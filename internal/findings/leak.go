package findings

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// WhereNotWho must stand beside every leak.
const WhereNotWho = "a snapshot shows where memory was allocated, not who keeps it"

// Leak is memory that grows from step to step: blocks that step after step
// allocates at one line of the program and does not free while steps go on.
type Leak struct {
	// BytesPerStep is what a step leaves behind: the median if every step
	// leaves something, else the mean over all of them.
	BytesPerStep uint64
	Median       bool // BytesPerStep is one
	// Least and most that a step left behind, of the steps looked at.
	LeastPerStep, MostPerStep uint64
	// Bytes is what all steps together have left by the end of the last, or by
	// a failure after that.
	Bytes  uint64
	Blocks int
	Steps  int   // complete ones
	KeptIn []int // positions in Steps.List of those that left something behind
	// FreedBytes of Bytes are freed after the last step; AtEnd says that the
	// program did not allocate any more once it began to free them.
	FreedBytes uint64
	AtEnd      bool
	Confidence Confidence
	Stack      trace.StackID // of the largest part
	Parts      []Part        // by stack, largest first
	// Replaced: each step replaces a buffer by a larger one, as torch.cat does.
	// Bytes is what it has grown by; while it grows, both are there.
	Replaced bool
}

const (
	// LeakSteps is the least number of complete steps that show a leak: of the first one
	// everything may stay, of the last one things may not be dropped yet, and
	// two in between make a trend at best.
	LeakSteps = 4
	// leakShare is the share of the peak that a leak must take to be reported:
	// kept numbers of a few bytes are no leak.
	leakShare = 1.0 / 1000
	// steady is how much of what the first half of the steps left the second
	// half must leave: a cache that fills leaves less and less.
	steady = 0.5
	// remains is how much of what steps leave must be there in addition: all
	// of it, but for what the same place happens to free otherwise.
	remains = 0.75
)

// Leaks returns memory that grows from step to step.
func (a *Analysis) Leaks() []Leak {
	all := a.Steps.List[:a.Steps.Complete()]
	if len(all) < LeakSteps {
		return nil
	}
	steps, each := bundle(all, leakRows)
	until := a.heldUntil(steps[len(steps)-1].End)
	rows := a.keptRows(steps, until)
	a.levelRows(rows, steps, until)
	peak := uint64(0)
	for _, live := range a.lives.live {
		peak = max(peak, live)
	}
	groups := map[timeline.Frame][]*keptRow{}
	for _, r := range rows {
		if r.leaks() {
			line := a.Line(r.stack)
			groups[line] = append(groups[line], r)
		}
	}
	var out []Leak
	for _, g := range groups {
		if l := a.leak(g, len(steps), each); float64(l.Bytes) >= leakShare*float64(peak) {
			a.keptIn(&l, all, until)
			out = append(out, l)
		}
	}
	for _, r := range a.growingRows(steps, until) {
		if slices.ContainsFunc(out, func(l Leak) bool {
			return slices.ContainsFunc(l.Parts, func(p Part) bool { return p.Stack == r.stack })
		}) {
			continue
		}
		l := Leak{
			BytesPerStep: r.growth() / uint64(each), Median: true, Bytes: r.bytes, Blocks: 1, Steps: a.Steps.Complete(),
			Confidence: weaker(Likely, a.Steps.Confidence), Stack: r.stack, Parts: []Part{{r.stack, r.bytes, 1}}, Replaced: r.kept[0] == r.kept[len(r.kept)-1],
		}
		l.LeastPerStep, l.MostPerStep = l.BytesPerStep, l.BytesPerStep
		for i := range all {
			l.KeptIn = append(l.KeptIn, i)
		}
		if float64(l.Bytes) >= leakShare*float64(peak) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(x, y Leak) int {
		return cmp.Or(cmp.Compare(y.BytesPerStep, x.BytesPerStep), cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Stack, y.Stack))
	})
	return out
}

// heldUntil returns the event up to which memory must be held to have leaked:
// the end of the last complete step, or a later failure, or the last allocation
// of a step that the trace breaks off. What a later step gives back has only
// piled up; what goes behind the last allocation goes with the program.
func (a *Analysis) heldUntil(end int) int {
	last := a.Steps.List[len(a.Steps.List)-1]
	working := end
	for i := a.Trace.Events.Len() - 1; i >= end; i-- {
		switch a.Trace.Events.Action.At(i) {
		case alloc.ActionOOM:
			return i
		case alloc.ActionAlloc:
			if !last.Complete && i >= last.Begin && i < last.End {
				working = max(working, i)
			}
		}
	}
	return working
}

// leakRows is the most steps that are distinguished. In a longer run several in
// a row count as one.
const leakRows = 1000

// bundle joins steps so that at most so many remain. each is how many make one.
func bundle(steps []Step, most int) (out []Step, each int) {
	each = (len(steps) + most - 1) / most
	if each == 1 {
		return steps, 1
	}
	for i := 0; i+each <= len(steps); i += each {
		out = append(out, Step{Number: steps[i].Number, Begin: steps[i].Begin, End: steps[i+each-1].End, Complete: true})
	}
	out[len(out)-1].End = steps[len(steps)-1].End
	return out, each
}

// keptRow is what the blocks of one stack do over the steps.
type keptRow struct {
	stack trace.StackID
	kept  []uint64 // allocated in a step and held to the end
	level []int64  // active when a step ends
	bytes uint64   // of kept
	// dropped is what outlived a whole step and was freed later on.
	dropped uint64
	blocks  int
	last    int64 // of a growing row: what is there at the end
}

// keptRows returns the stacks that left something behind in at least two steps
// besides the first and the last.
func (a *Analysis) keptRows(steps []Step, until int) []*keptRow {
	type tally struct{ steps, last int32 }
	tallies := map[trace.StackID]tally{}
	a.eachKept(steps, until, func(b *block, step int) {
		t := tallies[known(b.stack)]
		if step > 0 && step < len(steps)-1 && t.last != int32(step) {
			tallies[known(b.stack)] = tally{t.steps + 1, int32(step)}
		}
	})
	var rows []*keptRow
	index := map[trace.StackID]*keptRow{}
	for id, t := range tallies {
		if t.steps >= 2 {
			r := &keptRow{stack: id, kept: make([]uint64, len(steps)), level: make([]int64, len(steps))}
			rows, index[id] = append(rows, r), r
		}
	}
	slices.SortFunc(rows, func(x, y *keptRow) int { return cmp.Compare(x.stack, y.stack) })
	a.eachKept(steps, until, func(b *block, step int) {
		if r := index[known(b.stack)]; r != nil {
			r.kept[step] += b.size
			r.bytes += b.size
			r.blocks++
		}
	})
	return rows
}

// eachKept visits the blocks that steps allocate and that are there at an event.
func (a *Analysis) eachKept(steps []Step, until int, visit func(b *block, step int)) {
	k := 0
	for b := range a.lives.allocated() {
		if int(b.gone) < until || int(b.born) < steps[0].Begin {
			continue
		}
		for k < len(steps) && steps[k].End <= int(b.born) {
			k++
		}
		if k == len(steps) {
			return
		}
		visit(b, k)
	}
}

// keptIn finds the steps that left something behind, and what became of it.
func (a *Analysis) keptIn(l *Leak, steps []Step, until int) {
	first := never
	its := map[trace.StackID]bool{}
	for _, p := range l.Parts {
		its[p.Stack] = true
	}
	a.eachKept(steps, until, func(b *block, step int) {
		if !its[known(b.stack)] {
			return
		}
		if n := len(l.KeptIn); n == 0 || l.KeptIn[n-1] != step {
			l.KeptIn = append(l.KeptIn, step)
		}
		if b.gone != never {
			l.FreedBytes += b.size
			first = min(first, int(b.gone))
		}
	})
	l.AtEnd = l.FreedBytes > 0
	for i := first; i < a.Trace.Events.Len() && l.AtEnd; i++ {
		l.AtEnd = a.Trace.Events.Action.At(i) != alloc.ActionAlloc
	}
	if l.FreedBytes > 0 && (!l.AtEnd || a.Steps.Complete() < len(a.Steps.List)) {
		l.Confidence = weaker(l.Confidence, Likely) // the program went on without it
	}
}

// growingRows returns the stacks of which more and more is there when steps end,
// though no block stays: a buffer that is replaced by a larger one, a queue that
// gains one a step, hooks that pile up.
func (a *Analysis) growingRows(steps []Step, until int) []*keptRow {
	ends := make([]int32, len(steps))
	for i, s := range steps {
		ends[i] = int32(s.End)
	}
	index := map[trace.StackID]*keptRow{}
	var rows []*keptRow
	for b := range a.lives.allocated() {
		first, _ := slices.BinarySearch(ends, b.born+1)
		if int(b.born) < steps[0].Begin || b.stack <= trace.EmptyStack || first == len(ends) || b.gone <= ends[first] {
			continue // no step ends while it is there
		}
		r := index[b.stack]
		if r == nil {
			r = &keptRow{stack: b.stack, kept: make([]uint64, len(steps)), level: make([]int64, len(steps))}
			rows, index[b.stack] = append(rows, r), r
		}
		if b.alive(int32(min(until, len(a.lives.live)-1))) {
			r.last += int64(b.size)
		}
		for i := first; i < len(ends) && ends[i] < b.gone; i++ {
			r.level[i] += int64(b.size)
			r.kept[i]++
		}
	}
	return slices.DeleteFunc(rows, func(r *keptRow) bool { return !r.grows() })
}

// grows reports whether the level of a row of growingRows never falls but for the
// first and the last step, and rises again and again by about as much.
func (r *keptRow) grows() bool {
	r.level, r.kept = r.level[1:len(r.level)-1], r.kept[1:len(r.kept)-1]
	n := len(r.level)
	if n < LeakSteps-1 {
		return false
	}
	last, widest := 0, 1
	var rises []int64
	for i := 1; i < n; i++ {
		switch by := r.level[i] - r.level[i-1]; {
		case by < 0:
			return false
		case by > 0:
			rises, widest, last = append(rises, by), max(widest, i-last), i
		}
	}
	// Two that rise may do so by chance, but not by the same.
	if len(rises) < 2 || len(rises) < LeakSteps-1 && rises[0] != rises[1] || n-1-last >= widest {
		return false
	}
	least, most := slices.Min(rises), slices.Max(rises)
	r.bytes = uint64(r.level[n-1] - r.level[0])
	// What fell since has only piled up.
	return most <= 2*least && r.last >= r.level[n-1]-2*most
}

// growth is what a step adds to the level, on average.
func (r *keptRow) growth() uint64 {
	return uint64((r.level[len(r.level)-1] - r.level[0]) / int64(len(r.level)-1))
}

// levelRows fills in how much of each row is active when steps end.
func (a *Analysis) levelRows(rows []*keptRow, steps []Step, until int) {
	if len(rows) == 0 {
		return
	}
	index := make(map[trace.StackID]*keptRow, len(rows))
	for _, r := range rows {
		index[r.stack] = r
	}
	ends := make([]int32, len(steps))
	for i, s := range steps {
		ends[i] = int32(s.End)
	}
	for b := range a.lives.all() {
		r := index[known(b.stack)]
		if r == nil {
			continue
		}
		// Active at the end of the steps from first on, up to and without last.
		first, _ := slices.BinarySearch(ends, b.born+1)
		last := len(ends)
		if b.gone != never {
			last, _ = slices.BinarySearch(ends, b.gone+1)
		}
		if int(b.born) >= steps[0].Begin && last-first >= 2 && int(b.gone) < until {
			r.dropped += b.size
		}
		if first < last {
			r.level[first] += int64(b.size)
			if last < len(ends) {
				r.level[last] -= int64(b.size)
			}
		}
	}
	for _, r := range rows {
		for i := 1; i < len(r.level); i++ {
			r.level[i] += r.level[i-1]
		}
	}
}

// leaks reports whether a row is a leak, and not a cache that fills, a buffer that
// is replaced or a window over the last steps. It ignores the first and the last
// step.
func (r *keptRow) leaks() bool {
	first, last, widest, count := -1, -1, 1, 0
	end := len(r.kept) - 2
	var sum, early, late uint64
	for i := 1; i <= end; i++ {
		if r.kept[i] == 0 {
			continue
		}
		if first < 0 {
			first = i
		} else {
			widest = max(widest, i-last)
		}
		last = i
		count++
		sum += r.kept[i]
	}
	if count < min(3, end) {
		return false
	}
	// What was dropped before will be dropped again.
	if float64(r.dropped) > (1-remains)*float64(sum) {
		return false
	}
	// It goes on to the end, at the pace it had, ...
	if end-last >= widest {
		return false
	}
	// ... has done so for most of the time, ...
	if 2*(last-first+1) < end {
		return false
	}
	// ... without slowing down, ...
	for i := first; i <= last; i++ {
		if 2*(i-first) < last-first+1 {
			early += r.kept[i]
		} else {
			late += r.kept[i]
		}
	}
	if odd := (last - first + 1) % 2; odd == 1 && last > first {
		early -= r.kept[first+(last-first)/2] // the middle belongs to neither
	}
	if float64(late) < steady*float64(early) {
		return false
	}
	// ... and nothing goes for what comes: neither all the way nor lately, as
	// in a window over the last steps that has filled.
	late = 0
	recent := max(0, end-max(2, widest))
	for i := recent + 1; i <= end; i++ {
		late += r.kept[i]
	}
	return float64(r.level[last]-r.level[first-1]) >= remains*float64(sum) &&
		float64(r.level[end]-r.level[recent]) >= remains*float64(late)
}

// leak adds the rows of one line up.
func (a *Analysis) leak(rows []*keptRow, steps, each int) Leak {
	l := Leak{Steps: a.Steps.Complete()}
	kept := make([]uint64, steps)
	dropped := uint64(0)
	for _, r := range rows {
		for i := range kept {
			kept[i] += r.kept[i]
		}
		dropped += r.dropped
		l.Bytes += r.bytes
		l.Blocks += r.blocks
		l.Parts = append(l.Parts, Part{r.stack, r.bytes, r.blocks})
	}
	sortParts(l.Parts)
	l.Stack = l.Parts[0].Stack
	inner := kept[1 : steps-1]
	l.LeastPerStep, l.MostPerStep = slices.Min(inner), slices.Max(inner)
	l.Median = l.LeastPerStep > 0
	if l.Median {
		l.BytesPerStep = median(slices.Clone(inner)) / uint64(each)
	} else {
		l.BytesPerStep = l.Bytes / uint64(l.Steps)
	}
	l.LeastPerStep /= uint64(each)
	l.MostPerStep /= uint64(each)
	l.Confidence = Likely
	if l.Median && dropped == 0 && steps > LeakSteps+1 {
		l.Confidence = Certain
	}
	l.Confidence = weaker(l.Confidence, a.Steps.Confidence)
	return l
}

func sortParts(parts []Part) {
	slices.SortFunc(parts, func(x, y Part) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Stack, y.Stack))
	})
}

// Line returns the line of the user's own program that led to a stack: the one
// that called the outermost nn.Module, so that all of a model counts as one, or
// else the innermost. Without such a line it is the place of the allocation.
func (a *Analysis) Line(id trace.StackID) timeline.Frame {
	frames := a.Trace.Stacks.Frames(id)
	var line timeline.Frame
	for i := len(frames) - 1; i >= 0; i-- {
		if a.stacks.frames[frames[i]]&markModule != 0 && line != (timeline.Frame{}) {
			return line
		}
		if a.stacks.frames[frames[i]]&markUser != 0 {
			line = frameOf(a.Trace, frames[i])
		}
	}
	if line == (timeline.Frame{}) && len(frames) > 0 {
		site, _ := timeline.SiteOf(a.Trace, id)
		return site.Inner
	}
	return line
}

// median sorts the values; 0 if there are none.
func median[T cmp.Ordered](values []T) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	slices.Sort(values)
	return values[len(values)/2]
}
