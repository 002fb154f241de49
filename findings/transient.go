package findings

import (
	"github.com/ashlar-mem/ashlar/trace"
)

// Transient is what the peak of an ordinary step is made of besides what stays:
// blocks that the step allocates and frees again.
type Transient struct {
	Bytes uint64 // at the peak, in the median of the steps
	// PeakBytes is all active memory at the peak, RestBytes the lowest of the
	// step, each of the median step.
	PeakBytes, RestBytes uint64
	Steps                int           // that were looked at
	Event                int           // the peak of the step whose Bytes are the median
	Stack                trace.StackID // of the largest part
	Parts                []Part        // by stack, largest first: the median of each
}

// transientSteps is how many steps are looked at; more do not change a median.
const transientSteps = 255

// sample picks at most so many steps, evenly spread.
func sample(steps []Step, most int) []Step {
	if len(steps) <= most {
		return steps
	}
	out := make([]Step, most)
	for i := range out {
		out[i] = steps[i*len(steps)/most]
	}
	return out
}

// Transient looks at the peaks of all complete steps but the first, which also
// gets going, unless it is the only one. It is nil if no step is complete.
func (a *Analysis) Transient() *Transient {
	steps := a.Steps.List[:a.Steps.Complete()]
	if len(steps) > 1 {
		steps = steps[1:]
	}
	if len(steps) == 0 {
		return nil
	}
	steps = sample(steps, transientSteps)
	peaks := make([]int32, len(steps))
	t := &Transient{Steps: len(steps)}
	var rests, heights []uint64
	for k, s := range steps {
		low, high, at := a.lives.at(s.Begin), uint64(0), s.Begin
		for i, live := range a.lives.live[s.Begin:s.End] {
			low = min(low, live)
			if live > high {
				high, at = live, s.Begin+i
			}
		}
		peaks[k] = int32(at)
		rests, heights = append(rests, low), append(heights, high)
	}
	type row struct {
		bytes  []uint64
		blocks []int
	}
	rows := map[trace.StackID]*row{}
	sums := make([]uint64, len(steps))
	k := 0
	for _, b := range a.lives.blocks[a.lives.older:] {
		for k < len(steps) && steps[k].End <= int(b.born) {
			k++
		}
		if k == len(steps) {
			break
		}
		if int(b.born) < steps[k].Begin || !b.alive(peaks[k]) || int(b.gone) >= steps[k].End {
			continue
		}
		id := known(b.stack)
		r := rows[id]
		if r == nil {
			r = &row{make([]uint64, len(steps)), make([]int, len(steps))}
			rows[id] = r
		}
		r.bytes[k] += b.size
		r.blocks[k]++
		sums[k] += b.size
	}
	for id, r := range rows {
		if bytes := median(r.bytes); bytes > 0 {
			t.Parts = append(t.Parts, Part{id, bytes, median(r.blocks)})
		}
	}
	if len(t.Parts) == 0 {
		return nil
	}
	sortParts(t.Parts)
	t.Stack = t.Parts[0].Stack
	t.PeakBytes, t.RestBytes = median(heights), median(rests)
	middle := make([]uint64, len(sums))
	copy(middle, sums)
	t.Bytes = median(middle)
	for k, sum := range sums {
		if sum == t.Bytes {
			t.Event = int(peaks[k])
			break
		}
	}
	return t
}
