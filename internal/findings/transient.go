package findings

import (
	"slices"

	"github.com/ashlar-mem/ashlar/trace"
)

// Transient is the part of an ordinary step's peak that does not stay: blocks
// that the step allocates and frees again.
type Transient struct {
	Bytes uint64 // at the peak, in the ordinary step: the one in which they are the median
	// PeakBytes is all active memory at the peak, RestBytes the lowest of that
	// step.
	PeakBytes, RestBytes uint64
	Steps                int           // that were looked at
	Event                int           // of the peak
	Stack                trace.StackID // of the largest part
	Parts                []Part        // by stack, largest first; they add up to Bytes
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

// Transient examines the peaks of all complete steps except the first, which
// includes warm-up, and those with a spike, unless no other is left. It returns
// nil if no step is complete or nothing comes and goes.
func (a *Analysis) Transient() *Transient { return a.transient(a.spikes()) }

func (a *Analysis) transient(spikes []Spike) *Transient {
	steps := sample(a.ordinary(spikes), transientSteps)
	if len(steps) == 0 {
		return nil
	}
	peaks := make([]int32, len(steps))
	for k, s := range steps {
		high, at := uint64(0), s.Begin
		for i, live := range a.lives.live[s.Begin:s.End] {
			if live > high {
				high, at = live, s.Begin+i
			}
		}
		peaks[k] = int32(at)
	}
	sums := make([]uint64, len(steps))
	a.eachTransient(steps, peaks, func(k int, b *block) { sums[k] += b.size })
	t := &Transient{Bytes: median(slices.Clone(sums)), Steps: len(steps)}
	if t.Bytes == 0 {
		return nil
	}
	k := slices.Index(sums, t.Bytes)
	parts := map[trace.StackID]*Part{}
	a.eachTransient(steps[k:k+1], peaks[k:k+1], func(_ int, b *block) {
		id := known(b.stack)
		if parts[id] == nil {
			parts[id] = &Part{Stack: id}
		}
		parts[id].Bytes += b.size
		parts[id].Blocks++
	})
	for _, p := range parts {
		t.Parts = append(t.Parts, *p)
	}
	sortParts(t.Parts)
	t.Stack, t.Event, t.PeakBytes = t.Parts[0].Stack, int(peaks[k]), a.lives.live[peaks[k]]
	t.RestBytes = a.lives.levelAt(steps[k].Begin)
	for _, live := range a.lives.live[steps[k].Begin:steps[k].End] {
		t.RestBytes = min(t.RestBytes, live)
	}
	return t
}

// ordinary returns the complete steps but the first and those with a spike, as
// far as any are left.
func (a *Analysis) ordinary(spikes []Spike) []Step {
	steps := a.Steps.List[:a.Steps.Complete()]
	if len(steps) <= 1 {
		return steps
	}
	odd := map[int]bool{0: true}
	for _, s := range spikes {
		for _, i := range s.Steps {
			odd[i] = true
		}
	}
	var out []Step
	for i, s := range steps {
		if !odd[i] {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return steps[1:]
	}
	return out
}

// eachTransient visits the blocks that come and go within steps and are there
// at their peaks.
func (a *Analysis) eachTransient(steps []Step, peaks []int32, visit func(step int, b *block)) {
	k := 0
	for b := range a.lives.allocated() {
		for k < len(steps) && steps[k].End <= int(b.born) {
			k++
		}
		if k == len(steps) {
			return
		}
		if int(b.born) >= steps[k].Begin && b.alive(peaks[k]) && int(b.gone) < steps[k].End {
			visit(k, b)
		}
	}
}
