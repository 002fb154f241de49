package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/plan/ledger"
	"github.com/ashlar-mem/ashlar/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// comparison is a plan beside a trace.
type comparison struct {
	l   *ledger.Ledger
	t   *trace.Trace
	out *Against

	planned  []int32 // tensors that are compared, in order of birth
	measured []int   // alloc events that are compared
	partner  []int32 // of a measured one, its position in planned; -1
	matches  int
	from, to int // events of the plan that the recording covers
}

// recordedBirths lists what of the recording is compared.
func (c *comparison) recordedBirths() {
	for i := range c.t.Events.Len() {
		if c.t.Events.Action.At(i) == alloc.ActionAlloc && c.t.Events.Size.At(i) >= leastCompared {
			c.measured = append(c.measured, i)
		}
	}
}

// plannedBirths lists what of the plan is compared.
func (c *comparison) plannedBirths() {
	c.planned = c.planned[:0]
	for _, e := range c.l.Events {
		if e >= 0 && c.l.Tensors[e].Bytes >= leastCompared {
			c.planned = append(c.planned, e)
		}
	}
}

// mostSteps is how many steps of a recording are compared.
const mostSteps = 100

// matchSteps matches, with as many steps planned as were recorded. Once a run
// has its state one step is like the next, so the last one is repeated.
func (c *comparison) matchSteps() {
	c.plannedBirths()
	steps, step := c.lastStep()
	if step > 0 {
		var planned, measured uint64
		for _, e := range c.planned {
			planned += uint64(c.l.Tensors[e].Bytes)
		}
		for i, e := range c.measured {
			if measured += c.t.Events.Size.At(e); measured > planned+uint64(mostSteps-steps)*step {
				c.measured = c.measured[:i]
				c.out.Notes = append(c.out.Notes, "the recording has more than "+strconv.Itoa(mostSteps)+" steps: those after them are not compared")
				break
			}
		}
		if measured > planned {
			steps = c.repeat(steps, (measured-planned+step-1)/step)
		}
	}
	c.match()
	// A recording that begins mid-run has more steps than it has bytes for with
	// the building of the model.
	if left := c.unmatchedAfter(); step > 0 && c.matches > 0 && left > step/2 {
		c.repeat(steps, (left+step-1)/step)
		c.match()
	}
}

// lastStep is the last planned step and the bytes of what is compared of it; 0
// if nothing is trained.
func (c *comparison) lastStep() (step int, bytes uint64) {
	from := c.l.Scored()
	phase := c.l.PhaseAt(from)
	if phase.Name == ledger.Prefill || phase.Name == ledger.Decode || phase.Name == ledger.Build {
		return 0, 0
	}
	for _, e := range c.planned {
		if int(c.l.Tensors[e].Birth) >= from {
			bytes += uint64(c.l.Tensors[e].Bytes)
		}
	}
	return phase.Step, bytes
}

// repeat plans more steps and returns how many there are then.
func (c *comparison) repeat(steps int, more uint64) int {
	for n := min(more, uint64(max(mostSteps-steps, 0))); n > 0 && c.l.Repeat(); n-- {
		steps++
	}
	c.plannedBirths()
	return steps
}

// unmatchedAfter is how much the recording has after the last allocation that
// is planned, if the plan ends there too.
func (c *comparison) unmatchedAfter() (bytes uint64) {
	for i := len(c.partner) - 1; i >= 0; i-- {
		if k := c.partner[i]; k >= 0 {
			if _, step := c.lastStep(); int(k) < len(c.planned)-1 && c.plannedAfter(int(k)) > step/2 {
				return 0
			}
			return bytes
		}
		bytes += c.t.Events.Size.At(c.measured[i])
	}
	return bytes
}

// plannedAfter is how much is planned after one of the planned.
func (c *comparison) plannedAfter(k int) (bytes uint64) {
	for _, e := range c.planned[k+1:] {
		bytes += uint64(c.l.Tensors[e].Bytes)
	}
	return bytes
}

// match pairs allocations by size and order.
func (c *comparison) match() {
	a, b := make([]int64, len(c.measured)), make([]int64, len(c.planned))
	for i, e := range c.measured {
		a[i] = int64(c.t.Events.Size.At(e))
	}
	for i, e := range c.planned {
		b[i] = c.l.Tensors[e].Bytes
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
	c.from, c.to = int(c.l.Tensors[c.planned[first]].Birth), int(c.l.Tensors[c.planned[last]].Birth)
	// A recording of the whole run covers what comes before its first large
	// allocation too.
	if first == 0 {
		c.from = 0
	}
	if last == len(c.planned)-1 {
		c.to = len(c.l.Events) - 1
	}
	from, to := c.l.PhaseAt(c.from), c.l.PhaseAt(c.to)
	c.out.From, c.out.To = phaseText(from), phaseText(to)
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
	parts := newParts(c.l)
	part := parts.of(c.from)
	for i, k := range c.partner {
		bytes := c.t.Events.Size.At(c.measured[i])
		if k >= 0 {
			part = parts.of(int(c.l.Tensors[c.planned[k]].Birth))
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
		t := &c.l.Tensors[e]
		if taken[k] || int(t.Birth) < c.from || int(t.Birth) > c.to {
			continue
		}
		c.out.Extra += uint64(t.Bytes)
		parts.of(int(t.Birth)).Extra += uint64(t.Bytes)
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

// layerNumber is the number of a layer within a module's name.
var layerNumber = regexp.MustCompile(`\.\d+(\.|:|$)`)

// name is what a planned tensor is, in whatever layer.
func (c *comparison) name(e int32) (what, where string) {
	t := &c.l.Tensors[e]
	return c.l.Text(t.Op), layerNumber.ReplaceAllString(c.l.Text(t.Module), ".*$1")
}

// site is where a recorded allocation was made.
func (c *comparison) site(event int) (what, where string) {
	s, ok := timeline.SiteOf(c.t, c.t.Events.Stack.At(event))
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

// of is the part that an event of the plan belongs to.
func (p *parts) of(event int) *PartPair {
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
