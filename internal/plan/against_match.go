package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// comparison is a plan beside a trace.
type comparison struct {
	ledger *ledger.Ledger
	run    *run.Run
	trace  *trace.Trace
	out    *Against

	planned  []int32 // tensors that are compared, in order of birth
	measured []int   // alloc events that are compared
	partner  []int32 // of a measured one, its position in planned; -1
	matches  int
	from, to int // events of the plan that the recording covers
	end      int // events of the recording from here on are not compared
}

// recordedBirths lists the allocations of the recording that are compared.
func (c *comparison) recordedBirths() {
	c.end = c.trace.Events.Len()
	for i := range c.trace.Events.Len() {
		if c.trace.Events.Action.At(i) == alloc.ActionAlloc && c.trace.Events.Size.At(i) >= leastCompared {
			c.measured = append(c.measured, i)
		}
	}
}

// mostSteps is how many steps of a recording are compared. Steps are alike, and
// the time that a match takes grows with the square of their number.
const mostSteps = 6

// matchSteps matches the recording with as many planned steps as it has. Once a
// run has its optimizer state, one step is like the next, so the last planned one
// is repeated. A recording may begin with the building of the model, with the
// first step or later: matchSteps takes the start that matches best.
//
// A dry run has the steps that the script has, alike or not. If most of the
// recording is found in it, they are the same.
func (c *comparison) matchSteps() {
	if c.ledger.Whole {
		whole := *c
		whole.match(0, len(c.ledger.Events))
		if float64(whole.matches) >= wholeShare*float64(len(c.measured)) {
			*c = whole
			return
		}
	}
	steps := c.recordedSteps()
	if steps == 0 {
		c.match(0, len(c.ledger.Events))
		return
	}
	if steps > mostSteps {
		c.cut(float64(mostSteps) / float64(steps))
		c.out.Notes = append(c.out.Notes, fmt.Sprintf("the recording has about %d steps: the first %d are compared", steps, mostSteps))
		steps = mostSteps
	}
	last := c.ledger.PhaseAt(c.ledger.LastStep()).Step
	for ; last < steps+parted+steady-1 && c.ledger.Repeat(); last++ {
	}
	var best *comparison
	for n := steps; n <= steps+parted; n++ {
		for _, x := range []struct{ from, to int }{{0, n}, {1, n}, {steady, n + steady - 1}} {
			try := *c
			try.match(c.stepStart(x.from), c.stepStart(x.to+1))
			if best == nil || best.matches == 0 || try.matches > 0 && try.score() > best.score() {
				best = &try
			}
			if best.matches == len(c.measured) && best.matches == len(best.planned) {
				break
			}
		}
	}
	*c = *best
}

// wholeShare is the share of a recording that is most of it.
const wholeShare = 0.8

// parted is how many incomplete steps there may be: a recording may begin and end
// within a step.
const parted = 2

// steady is the first step that is like all later ones.
const steady = 3

// stepStart is where a step begins; 0 is the building of the model.
func (c *comparison) stepStart(step int) int {
	if step == 0 {
		return 0
	}
	for _, p := range c.ledger.Phases {
		if p.Step >= step {
			return p.First
		}
	}
	return len(c.ledger.Events)
}

// recordedSteps estimates how many whole training steps the recording has: how
// many times as often as the planned step it has the sizes of that step, as a
// median weighted by bytes. Sizes of weights do not count, as they occur in other
// parts of a run too. It is 0 if nothing is trained.
func (c *comparison) recordedSteps() int {
	from := c.ledger.LastStep()
	if p := c.ledger.PhaseAt(from); p.Step == 0 || p.Name == ledger.Prefill || p.Name == ledger.Decode {
		return 0
	}
	built, planned, measured := map[int64]bool{}, map[int64]int{}, map[int64]int{}
	first := c.stepStart(1)
	for i, e := range c.ledger.Events {
		if e < 0 || c.ledger.Tensors[e].Bytes < leastCompared {
			continue
		}
		if size := c.ledger.Tensors[e].Bytes; i < first {
			built[size] = true
		} else if i >= from {
			planned[size]++
		}
	}
	for _, e := range c.measured {
		measured[int64(c.trace.Events.Size.At(e))]++
	}
	type ratio struct{ steps, bytes float64 }
	var ratios []ratio
	var all float64
	for size, n := range planned {
		if !built[size] {
			r := ratio{float64(measured[size]) / float64(n), float64(size) * float64(n)}
			ratios = append(ratios, r)
			all += r.bytes
		}
	}
	slices.SortFunc(ratios, func(a, b ratio) int { return cmp.Or(cmp.Compare(a.steps, b.steps), cmp.Compare(a.bytes, b.bytes)) })
	half := all / 2
	for _, r := range ratios {
		if half -= r.bytes; half <= 0 {
			return max(int(r.steps), 1)
		}
	}
	return 1
}

// cut leaves out the end of a recording.
func (c *comparison) cut(keep float64) {
	n := int(keep * float64(len(c.measured)))
	c.measured, c.end = c.measured[:n], c.measured[n]
}

// score is what matches less what does not.
func (c *comparison) score() (bytes int64) {
	for i, k := range c.partner {
		if k >= 0 {
			bytes += 2 * int64(c.trace.Events.Size.At(c.measured[i]))
		}
	}
	for _, e := range c.planned {
		if t := &c.ledger.Tensors[e]; int(t.Birth) >= c.from && int(t.Birth) <= c.to {
			bytes -= t.Bytes
		}
	}
	return bytes
}

// match pairs allocations by size and order, with the planned events from one
// to before another.
func (c *comparison) match(from, to int) {
	c.planned = nil
	for _, e := range c.ledger.Events[from:to] {
		if e >= 0 && c.ledger.Tensors[e].Bytes >= leastCompared {
			c.planned = append(c.planned, e)
		}
	}
	a, b := make([]int64, len(c.measured)), make([]int64, len(c.planned))
	for i, e := range c.measured {
		a[i] = int64(c.trace.Events.Size.At(e))
	}
	for i, e := range c.planned {
		b[i] = c.ledger.Tensors[e].Bytes
	}
	c.partner, c.matches = ledger.Common(a, b), 0
	first, last := -1, -1
	for _, k := range c.partner {
		if k >= 0 {
			if first < 0 {
				first = int(k)
			}
			last = int(k)
			c.matches++
		}
	}
	if c.matches == 0 {
		return
	}
	c.from, c.to = int(c.ledger.Tensors[c.planned[first]].Birth), int(c.ledger.Tensors[c.planned[last]].Birth)
	// What is small before the first and after the last large allocation is
	// covered too.
	if first == 0 {
		c.from = from
	}
	if last == len(c.planned)-1 {
		c.to = to - 1
	}
}

// terms adds up what is matched and what is not.
func (c *comparison) terms() {
	sums := map[TermPair]*TermPair{}
	add := func(what, where, change string, bytes uint64) {
		key := TermPair{What: what, Where: where, Change: change}
		s := sums[key]
		if s == nil {
			s = &TermPair{What: what, Where: where, Change: change}
			sums[key] = s
		}
		s.Count++
		s.Bytes += bytes
		s.Most = max(s.Most, bytes)
	}
	taken := make([]bool, len(c.planned))
	c.first()
	parts := newParts(c.ledger)
	part := parts.partAt(c.from)
	for i, k := range c.partner {
		bytes := c.trace.Events.Size.At(c.measured[i])
		if k >= 0 {
			part = parts.partAt(int(c.ledger.Tensors[c.planned[k]].Birth))
		}
		if k < 0 {
			c.out.Missing += bytes
			part.Missing += bytes // where the one before it is
			what, where := c.site(c.measured[i])
			add(what, where, "missing", bytes)
			continue
		}
		taken[k] = true
		c.out.Matched += bytes
		part.Matched += bytes
		what, where := c.name(c.planned[k])
		add(what, where, "matched", bytes)
	}
	for k, e := range c.planned {
		t := &c.ledger.Tensors[e]
		if taken[k] || int(t.Birth) < c.from || int(t.Birth) > c.to {
			continue
		}
		c.out.Extra += uint64(t.Bytes)
		parts.partAt(int(t.Birth)).Extra += uint64(t.Bytes)
		what, where := c.name(e)
		add(what, where, "extra", uint64(t.Bytes))
	}
	c.out.Covered = covered(c.out.Matched, c.out.Missing)
	c.out.Parts = parts.list()
	for _, s := range sums {
		c.out.Terms = append(c.out.Terms, *s)
	}
	order := map[string]int{"missing": 0, "extra": 1, "matched": 2}
	slices.SortFunc(c.out.Terms, func(a, b TermPair) int {
		return cmp.Or(cmp.Compare(order[a.Change], order[b.Change]), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.What, b.What), cmp.Compare(a.Where, b.Where))
	})
}

// first finds the first allocation that only one side has.
func (c *comparison) first() {
	next := 0 // of planned, and not compared yet
	for next < len(c.planned) && int(c.ledger.Tensors[c.planned[next]].Birth) < c.from {
		next++
	}
	after, event := "", c.from
	for i, k := range c.partner {
		if k >= 0 && int(k) == next {
			t := &c.ledger.Tensors[c.planned[k]]
			after, event = c.ledger.Text(t.Op), int(t.Birth)
			next++
			continue
		}
		out := &FirstPair{After: after}
		if k < 0 {
			out.Change, out.Bytes = "missing", c.trace.Events.Size.At(c.measured[i])
			out.What, out.Where = c.site(c.measured[i])
		} else {
			t := &c.ledger.Tensors[c.planned[next]]
			out.Change, out.Bytes, event = "extra", uint64(t.Bytes), int(t.Birth)
			out.What, out.Where = c.ledger.Text(t.Op), c.ledger.Text(t.Module)
		}
		phase := c.ledger.PhaseAt(event)
		out.Phase, out.Step = phase.Name, phase.Step
		c.out.First = out
		return
	}
}

// layerNumber is the number of a layer within a module's name.
var layerNumber = regexp.MustCompile(`\.\d+(\.|:|$)`)

// name is what a planned tensor is, in whatever layer.
func (c *comparison) name(e int32) (what, where string) {
	t := &c.ledger.Tensors[e]
	return c.ledger.Text(t.Op), layerNumber.ReplaceAllString(c.ledger.Text(t.Module), ".*$1")
}

// site is where a recorded allocation was made.
func (c *comparison) site(event int) (what, where string) {
	s, ok := timeline.SiteOf(c.trace, c.trace.Events.Stack.At(event))
	if !ok {
		return "recorded without a stack", ""
	}
	return s.Inner.Name, layerNumber.ReplaceAllString(s.String(), ".*$1")
}

// covered is the matched part of what was recorded.
func covered(matched, missing uint64) float64 {
	return float64(matched) / float64(max(matched+missing, 1))
}

// parts are the parts of a run, in order.
type parts struct {
	l   *ledger.Ledger
	all []*PartPair
}

func newParts(l *ledger.Ledger) *parts { return &parts{l: l} }

// partAt returns the part that an event of the plan belongs to.
func (p *parts) partAt(event int) *PartPair {
	phase := p.l.PhaseAt(event)
	name := phase.Name
	if phase.Step > 0 && name != ledger.Prefill && name != ledger.Decode {
		name = "step " + strconv.Itoa(phase.Step)
	}
	for _, x := range slices.Backward(p.all) {
		if x.Name == name {
			return x
		}
	}
	p.all = append(p.all, &PartPair{Name: name})
	return p.all[len(p.all)-1]
}

func (p *parts) list() []PartPair {
	out := make([]PartPair, len(p.all))
	for i, x := range p.all {
		x.Covered = covered(x.Matched, x.Missing)
		out[i] = *x
	}
	return out
}
