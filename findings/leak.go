package findings

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// WhereNotWho must stand beside every leak.
const WhereNotWho = "a snapshot shows where memory was allocated, not who keeps it"

// Leak is memory that grows from step to step: blocks that step after step
// allocates at one line of the program and nobody frees.
type Leak struct {
	BytesPerStep uint64 // the median slope
	// Least and most that a step left behind, of the steps looked at.
	LeastPerStep, MostPerStep uint64
	Bytes                     uint64 // that all steps together have left by the end of the last
	Blocks                    int
	Steps                     int // complete ones
	KeptIn                    int // so many of them left something behind
	Confidence                Confidence
	Stack                     trace.StackID // of the largest part
	Parts                     []Part        // by stack, largest first
}

const (
	// leakSteps is the least number of complete steps: of the first one
	// everything may stay, of the last one things may not be dropped yet, and
	// two in between make a trend at best.
	leakSteps = 4
	// leakShare is how much of the peak a leak must take in the trace to be
	// worth a word: kept numbers of a few bytes are no leak.
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
	if len(all) < leakSteps {
		return nil
	}
	steps, each := bundle(all, leakRows)
	rows := a.keptRows(steps)
	a.levelRows(rows, steps)
	peak := uint64(0)
	for _, live := range a.lives.live {
		peak = max(peak, live)
	}
	groups := map[timeline.Frame][]*keptRow{}
	for _, r := range rows {
		if r.leaks() {
			line := a.line(r.stack)
			groups[line] = append(groups[line], r)
		}
	}
	var out []Leak
	for _, g := range groups {
		if l := a.leak(g, len(steps), each); float64(l.Bytes) >= leakShare*float64(peak) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(x, y Leak) int {
		return cmp.Or(cmp.Compare(y.BytesPerStep, x.BytesPerStep), cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Stack, y.Stack))
	})
	return out
}

// leakRows is how many steps are told apart. In a longer run several in a row
// count as one.
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
	kept  []uint64 // allocated in a step and there at the end of the last
	level []int64  // active when a step ends
	bytes uint64   // of kept
	// dropped is what outlived a whole step and was freed later on.
	dropped uint64
	blocks  int
}

// keptRows returns the stacks that left something behind in at least two steps
// besides the first and the last.
func (a *Analysis) keptRows(steps []Step) []*keptRow {
	type tally struct{ steps, last int32 }
	tallies := map[trace.StackID]tally{}
	end := steps[len(steps)-1].End
	walk := func(f func(b *block, step int)) {
		k := 0
		blocks := a.lives.blocks[a.lives.older:]
		for i := range blocks {
			b := &blocks[i]
			if int(b.gone) < end || int(b.born) < steps[0].Begin {
				continue
			}
			for k < len(steps) && steps[k].End <= int(b.born) {
				k++
			}
			if k == len(steps) {
				return
			}
			f(b, k)
		}
	}
	walk(func(b *block, step int) {
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
	walk(func(b *block, step int) {
		if r := index[known(b.stack)]; r != nil {
			r.kept[step] += b.size
			r.bytes += b.size
			r.blocks++
		}
	})
	return rows
}

// levelRows fills in how much of each row is active when steps end.
func (a *Analysis) levelRows(rows []*keptRow, steps []Step) {
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
	for i := range a.lives.blocks {
		b := &a.lives.blocks[i]
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
		if int(b.born) >= steps[0].Begin && last-first >= 2 && last < len(ends) {
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

// leaks tells a leak from a cache that fills, a buffer that is replaced and a
// window over the last steps. It looks at the steps but the first and the last.
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
	level := make([]int64, steps)
	kept := make([]uint64, steps)
	for _, r := range rows {
		for i := range level {
			level[i] += r.level[i]
			kept[i] += r.kept[i]
		}
		l.Bytes += r.bytes
		l.Blocks += r.blocks
		l.Parts = append(l.Parts, Part{r.stack, r.bytes, r.blocks})
	}
	sortParts(l.Parts)
	l.Stack = l.Parts[0].Stack
	l.BytesPerStep = uint64(max(0, theilSen(level)))
	l.LeastPerStep = kept[1]
	whole := true
	for i, k := range kept {
		if k > 0 {
			l.KeptIn++
		}
		if i > 0 && i < steps-1 {
			l.LeastPerStep, l.MostPerStep = min(l.LeastPerStep, k), max(l.MostPerStep, k)
			whole = whole && k > 0
		}
	}
	l.KeptIn = l.KeptIn * l.Steps / steps
	l.BytesPerStep /= uint64(each)
	l.LeastPerStep /= uint64(each)
	l.MostPerStep /= uint64(each)
	l.Confidence = Likely
	if whole && steps > leakSteps+1 {
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

// line is the line of the user's own program that led to a stack: the one that
// called the outermost nn.Module, so that all of a model counts as one, or else
// the innermost. Without such a line it is the place of the allocation.
func (a *Analysis) line(id trace.StackID) timeline.Frame {
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

// theilSen is the median of the slopes between any two points.
func theilSen(y []int64) float64 {
	const most = 200 // points; more do not change a median
	stride := (len(y) + most - 1) / most
	var slopes []float64
	for i := 0; i < len(y); i += stride {
		for j := i + stride; j < len(y); j += stride {
			slopes = append(slopes, float64(y[j]-y[i])/float64(j-i))
		}
	}
	return median(slopes)
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
