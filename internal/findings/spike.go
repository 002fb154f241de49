package findings

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/trace"
)

// Spike is memory that some steps take and others do not: a checkpoint that is
// saved, an evaluation. It comes from places that the other steps never pass;
// a batch that is larger in some steps is no spike.
type Spike struct {
	Bytes uint64 // the most that its blocks take together, in the median of its steps
	// LevelBytes is all active memory at that moment, RestBytes the lowest of
	// its step, OrdinaryBytes the peak of the ordinary step, see [Transient].
	LevelBytes, RestBytes, OrdinaryBytes uint64
	Event                                int   // of that moment, in the median of its steps
	Steps                                []int // positions in Steps.List
	Every                                int   // they are so many steps apart; 0 if it varies or there is one
	Confidence                           Confidence
	Stack                                trace.StackID // of the largest part
	Parts                                []Part        // by stack, largest first: what each has at Event
}

const (
	// spikeSteps is the least number of complete steps: one that does more
	// must have others to differ from.
	spikeSteps = 3
	// spikeShare is how much of what an ordinary step takes above rest a spike
	// must take. Less does not show in the total.
	spikeShare = 0.05
)

// Spikes returns memory that only some of the steps take.
func (a *Analysis) Spikes() []Spike {
	list := a.spikes()
	against(list, a.transient(list))
	return list
}

// against compares spikes with the ordinary step, if there is one.
func against(spikes []Spike, t *Transient) {
	for i := range spikes {
		if t != nil {
			spikes[i].OrdinaryBytes = t.PeakBytes
		}
	}
}

func (a *Analysis) spikes() []Spike {
	steps := a.Steps.List[:a.Steps.Complete()]
	if len(steps) < spikeSteps {
		return nil
	}
	groups := a.presence(steps)
	a.groupDeltas(groups, steps)
	rest, peaks := a.levels(steps)
	extra := make([]uint64, len(steps))
	for i := range steps {
		extra[i] = peaks[i] - rest[i]
	}
	others, amounts := newRanked(peaks), newRanked(extra)
	var out []Spike
	for i := range groups {
		g := &groups[i]
		if !g.comesAndGoes(len(steps)) {
			continue
		}
		s, ok := a.spike(g, rest, others, amounts)
		if ok && !instead(groups, g, s.Bytes, steps) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(x, y Spike) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Event, y.Event))
	})
	return out
}

// levels returns the lowest and the highest active bytes of each step.
func (a *Analysis) levels(steps []Step) (rest, peaks []uint64) {
	for _, s := range steps {
		low, high := a.lives.levelAt(s.Begin), uint64(0)
		for _, live := range a.lives.live[s.Begin:s.End] {
			low, high = min(low, live), max(high, live)
		}
		rest, peaks = append(rest, low), append(peaks, high)
	}
	return rest, peaks
}

// group is the stacks that occur in the same steps, but not in all.
type group struct {
	stacks []trace.StackID
	steps  []int
	deltas []delta
	tops   []top // of each of steps
}

// delta is a block of a group that comes or goes.
type delta struct {
	event int32
	size  int64
	stack trace.StackID
}

// top is the most that a group has in a step.
type top struct {
	bytes int64
	event int
}

// presence groups the stacks by the steps in which they occur.
func (a *Analysis) presence(steps []Step) []group {
	type seen struct {
		hash  uint64
		count int32 // steps
		last  int32 // of them
	}
	stacks := map[trace.StackID]*seen{}
	perStep := func(visit func(id trace.StackID, step int)) {
		k := 0
		for b := range a.lives.allocated() {
			for k < len(steps) && steps[k].End <= int(b.born) {
				k++
			}
			if k == len(steps) {
				return
			}
			// An optimizer is part of every step, whether it allocates or not.
			if int(b.born) >= steps[k].Begin && b.stack > trace.EmptyStack && a.stacks.kinds[b.stack] != stackOptimizer {
				visit(b.stack, k)
			}
		}
	}
	var last trace.StackID
	var at *seen
	perStep(func(id trace.StackID, step int) {
		if id != last || at == nil { // neighbours often have the same stack
			if at = stacks[id]; at == nil {
				at = &seen{last: -1}
				stacks[id] = at
			}
			last = id
		}
		if at.last != int32(step) {
			at.last = int32(step)
			at.count++
			at.hash += mix(uint64(step) + 1)
		}
	})
	byHash := map[uint64]int{}
	var groups []group
	ids := make([]trace.StackID, 0, len(stacks))
	for id, s := range stacks {
		if int(s.count) < len(steps) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	of := map[trace.StackID]int{}
	for _, id := range ids {
		k, ok := byHash[stacks[id].hash]
		if !ok {
			k = len(groups)
			byHash[stacks[id].hash] = k
			groups = append(groups, group{})
		}
		groups[k].stacks = append(groups[k].stacks, id)
		of[id] = k
	}
	often, all := make([]float64, len(steps)), make([]float64, len(steps)) // allocations
	perStep(func(id trace.StackID, step int) {
		all[step]++
		k, ok := of[id]
		if !ok {
			often[step]++
			return
		}
		g := &groups[k]
		if n := len(g.steps); n == 0 || g.steps[n-1] != step {
			g.steps = append(g.steps, step)
		}
		if float64(len(g.steps)) >= oftenEnough*float64(step+1) {
			often[step]++
		}
	})
	for i := range often {
		often[i] /= max(all[i], 1)
	}
	if median(often) < halfOfIt {
		return nil // steps have so little in common that missing something means nothing
	}
	return groups
}

// mix scatters a number over 64 bits.
func mix(x uint64) uint64 {
	x *= 0x9E3779B97F4A7C15
	x ^= x >> 29
	x *= 0xBF58476D1CE4E5B9
	return x ^ x>>32
}

// groupDeltas collects the blocks of groups. A block that outlives the step
// after its own is no spike; it belongs to a leak or a state.
func (a *Analysis) groupDeltas(groups []group, steps []Step) {
	of := map[trace.StackID]int{}
	for k := range groups {
		for _, id := range groups[k].stacks {
			of[id] = k
		}
	}
	if len(of) == 0 {
		return
	}
	k := 0
	for b := range a.lives.allocated() {
		for k < len(steps) && steps[k].End <= int(b.born) {
			k++
		}
		if k == len(steps) {
			break
		}
		g, ok := of[b.stack]
		if !ok || int(b.born) < steps[k].Begin {
			continue
		}
		if last := min(k+1, len(steps)-1); b.gone == never && k < len(steps)-1 || b.gone != never && int(b.gone) > steps[last].End {
			continue
		}
		groups[g].deltas = append(groups[g].deltas, delta{b.born, int64(b.size), b.stack})
		if b.gone != never {
			groups[g].deltas = append(groups[g].deltas, delta{b.gone, -int64(b.size), b.stack})
		}
	}
	for k := range groups {
		g := &groups[k]
		slices.SortFunc(g.deltas, func(x, y delta) int { return cmp.Compare(x.event, y.event) })
		g.tops = make([]top, len(g.steps))
		sum, i := int64(0), 0
		for _, d := range g.deltas {
			sum += d.size
			for i+1 < len(g.steps) && steps[g.steps[i+1]].Begin <= int(d.event) {
				i++
			}
			if sum > g.tops[i].bytes {
				g.tops[i] = top{sum, int(d.event)}
			}
		}
	}
}

// bytes returns the median of what the group has at most in its steps.
func (g *group) bytes() uint64 {
	tops := make([]int64, len(g.tops))
	for i, t := range g.tops {
		tops[i] = t.bytes
	}
	return uint64(median(tops))
}

// comesAndGoes reports whether a group is in few enough steps, and is neither
// what the first ones do to get going nor what begins at some point and stays.
func (g *group) comesAndGoes(steps int) bool {
	n := len(g.steps)
	if 2*n > steps+1 || g.steps[n-1] == n-1 {
		return false
	}
	return n == 1 || g.steps[0] != steps-n
}

// instead reports whether the steps of a group only do in another place what the
// other steps do too: those have about as much that the group's steps lack.
func instead(groups []group, g *group, bytes uint64, steps []Step) bool {
	for i := range groups {
		o := &groups[i]
		if len(o.steps)+len(g.steps) >= len(steps)-1 && apart(o.steps, g.steps) && 2*o.bytes() >= bytes {
			return true
		}
	}
	return false
}

// apart reports whether two rising lists have nothing in common.
func apart(a, b []int) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return false
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return true
}

// ranked are values of steps in their order, but for the first step, which also gets going.
type ranked struct {
	values []uint64
	at     []int // step -> place of its value, -1 of the first
}

func newRanked(of []uint64) *ranked {
	order := make([]int, 0, len(of))
	for i := 1; i < len(of); i++ {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(of[a], of[b]) })
	r := &ranked{values: make([]uint64, len(order)), at: make([]int, len(of))}
	r.at[0] = -1
	for n, i := range order {
		r.values[n], r.at[i] = of[i], n
	}
	return r
}

// medianWithout is median of the values of all steps but some.
func (r *ranked) medianWithout(steps []int) uint64 {
	out := make([]int, 0, len(steps))
	for _, i := range steps {
		if r.at[i] >= 0 {
			out = append(out, r.at[i])
		}
	}
	slices.Sort(out)
	left := len(r.values) - len(out)
	if left == 0 {
		return 0
	}
	at := left / 2
	for _, place := range out {
		if place <= at {
			at++
		}
	}
	return r.values[at]
}

// spike measures a group. It returns false if the group does not show.
// The others are the peaks of all steps, the amounts what these are above what rests.
func (a *Analysis) spike(g *group, rest []uint64, others, amounts *ranked) (Spike, bool) {
	s := Spike{Bytes: g.bytes(), Steps: g.steps, Confidence: weaker(Likely, a.Steps.Confidence)}
	s.OrdinaryBytes = others.medianWithout(g.steps)
	if s.Bytes == 0 || float64(s.Bytes) < spikeShare*float64(amounts.medianWithout(g.steps)) {
		return s, false
	}
	k := slices.IndexFunc(g.tops, func(x top) bool { return uint64(x.bytes) == s.Bytes })
	s.Event = g.tops[k].event
	s.LevelBytes, s.RestBytes = a.lives.live[s.Event], rest[g.steps[k]]
	parts := map[trace.StackID]*Part{}
	for _, d := range g.deltas {
		if int(d.event) > s.Event {
			break
		}
		p := parts[d.stack]
		if p == nil {
			p = &Part{Stack: d.stack}
			parts[d.stack] = p
		}
		p.Bytes += uint64(d.size)
		if d.size > 0 {
			p.Blocks++
		} else {
			p.Blocks--
		}
	}
	for _, p := range parts {
		if p.Bytes > 0 {
			s.Parts = append(s.Parts, *p)
		}
	}
	sortParts(s.Parts)
	s.Stack = s.Parts[0].Stack
	if len(g.steps) > 1 {
		s.Confidence = a.Steps.Confidence
		s.Every = g.steps[1] - g.steps[0]
		for i := 2; i < len(g.steps); i++ {
			if g.steps[i]-g.steps[i-1] != s.Every {
				s.Every = 0
			}
		}
	}
	return s, true
}
