package plan

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/plan/ledger"
	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Against is a plan beside a recording of the run.
type Against struct {
	// Least is the size from which on allocations are compared.
	Least uint64 `json:"least_bytes"`
	// Matched, Missing and Extra are bytes of allocations that both have, that
	// only the recording has and that only the plan has, each counted once for
	// every time it is made.
	Matched uint64 `json:"matched_bytes"`
	Missing uint64 `json:"missing_bytes"`
	Extra   uint64 `json:"extra_bytes"`
	// Covered is the matched part of the recording's bytes.
	Covered float64 `json:"covered"`
	// From and To are the phases of the plan that the recording covers.
	From string `json:"from"`
	To   string `json:"to"`

	Peaks []PeakPair `json:"peaks"`
	Terms []TermPair `json:"terms"`
	Curve PairCurve  `json:"curve"`
	Notes []string   `json:"notes"`
}

// PeakPair is a peak as planned and as measured, over what the recording covers.
type PeakPair struct {
	Name     string  `json:"name"`
	Planned  uint64  `json:"planned_bytes"`
	Measured *uint64 `json:"measured_bytes"` // nil if the recording does not tell
}

// TermPair are the allocations of one kind: the same op of the same module in
// whatever layer.
type TermPair struct {
	What  string `json:"what"`
	Where string `json:"where"`
	// Change is matched, missing (the plan lacks it) or extra (only planned).
	Change string `json:"change"`
	Count  int    `json:"count"`
	Bytes  uint64 `json:"bytes"`
	Most   uint64 `json:"largest_bytes"` // of one
}

// PairCurve are the live bytes, as requested, in pieces of the planned events.
type PairCurve struct {
	Planned  []uint64 `json:"planned_bytes"`
	Measured []uint64 `json:"measured_bytes"`
	Phases   []Span   `json:"phases"`
}

// leastCompared is the size from which on allocations are compared: smaller
// ones come from other segments.
const leastCompared = 1 << 20

// Compare holds a plan against a recording. points is the length of the curves.
func Compare(ctx context.Context, q Question, t *trace.Trace, points int) (*Against, error) {
	if err := q.prepare(); err != nil {
		return nil, err
	}
	p, _, err := q.plan(ctx, q.Options, 0)
	if err != nil {
		return nil, err
	}
	c := &comparison{l: p.run.ledger, t: t, out: &Against{Least: leastCompared, Notes: []string{}, Terms: []TermPair{}}}
	c.births()
	if len(c.measured) == 0 {
		return nil, errors.New("the recording has no allocation of 1 MiB or more: record the whole run, or at least a step")
	}
	c.match()
	if c.matches == 0 {
		return nil, errors.New("no allocation of the recording has a planned size: it is of another model, batch or sequence")
	}
	c.terms()
	if c.out.Covered < 0.5 {
		c.out.Notes = append(c.out.Notes, "most of what was recorded is not planned: the recording seems to be of another model, batch or sequence")
	}
	if err := c.peaks(ctx, p); err != nil {
		return nil, err
	}
	c.curve(points)
	return c.out, nil
}

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

// births lists what is compared.
func (c *comparison) births() {
	for _, e := range c.l.Events {
		if e >= 0 && c.l.Tensors[e].Bytes >= leastCompared {
			c.planned = append(c.planned, e)
		}
	}
	for i := range c.t.Events.Len() {
		if c.t.Events.Action.At(i) == alloc.ActionAlloc && c.t.Events.Size.At(i) >= leastCompared {
			c.measured = append(c.measured, i)
		}
	}
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
	c.partner = ledger.Common(a, b)
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
	for i, k := range c.partner {
		bytes := c.t.Events.Size.At(c.measured[i])
		if k < 0 {
			c.out.Missing += bytes
			what, where := c.site(c.measured[i])
			add(what, where, "missing", bytes)
			continue
		}
		taken[k] = true
		c.out.Matched += bytes
		what, where := c.name(c.planned[k])
		add(what, where, "matched", bytes)
	}
	for k, e := range c.planned {
		t := &c.l.Tensors[e]
		if taken[k] || int(t.Birth) < c.from || int(t.Birth) > c.to {
			continue
		}
		c.out.Extra += uint64(t.Bytes)
		what, where := c.name(e)
		add(what, where, "extra", uint64(t.Bytes))
	}
	c.out.Covered = float64(c.out.Matched) / float64(max(c.out.Matched+c.out.Missing, 1))
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

// peaks compares the highest totals over what the recording covers.
func (c *comparison) peaks(ctx context.Context, p *planned) error {
	o, err := p.program.Run(ctx, replay.Conditions{Settings: p.q.Settings, From: c.from})
	if err != nil {
		return err
	}
	observed, err := replay.Observe(ctx, c.t, replay.ObserveOptions{})
	if err != nil {
		return err
	}
	peaks := timeline.New(c.t, timeline.Options{Observed: observed})
	var requested, allocated, reserved uint64
	before := peaks.Before()
	requested, allocated, reserved = before.Requested, before.Allocated, before.Reserved
	for cur := peaks.Cursor(); cur.Next(); {
		requested, allocated, reserved = max(requested, cur.Totals.Requested), max(allocated, cur.Totals.Allocated), max(reserved, cur.Totals.Reserved)
	}
	c.out.Peaks = []PeakPair{
		{"allocated", o.Allocated.Bytes, &allocated},
		{"reserved", o.Reserved.Bytes, &reserved},
		{"requested", o.Requested.Bytes, &requested},
	}
	if !peaks.Exact {
		c.out.Peaks[0].Measured = nil
		c.out.Notes = append(c.out.Notes, "the recording does not replay in every event, so what was allocated, block by block, is not known")
	}
	if peaks.Start.Kind != replay.StartRecorded {
		c.out.Notes = append(c.out.Notes, "the recording starts mid-run: its peaks include what was there before, whatever that is")
	}
	return nil
}

// curve draws both over the planned events: what was measured between two
// matched allocations lies between their planned ones.
func (c *comparison) curve(points int) {
	n := c.to - c.from + 1
	points = min(points, n)
	if points <= 0 {
		return
	}
	column := func(event int) int { return min(max((event-c.from)*points/n, 0), points-1) }
	out := &c.out.Curve
	out.Planned, out.Measured = make([]uint64, points), make([]uint64, points)
	var live uint64
	for i := 0; i <= c.to; i++ {
		if e := c.l.Events[i]; e >= 0 {
			live += uint64(c.l.Tensors[e].Bytes)
		} else {
			live -= uint64(c.l.Tensors[^e].Bytes)
		}
		if i >= c.from {
			raise(out.Planned, column(i), live)
		}
	}
	c.measuredCurve(out.Measured, column)
	for i, p := range c.l.Phases {
		end := len(c.l.Events)
		if i+1 < len(c.l.Phases) {
			end = c.l.Phases[i+1].First
		}
		if end <= c.from || p.First > c.to {
			continue
		}
		out.Phases = append(out.Phases, Span{p.Name, p.Step, column(p.First), column(end-1) + 1})
	}
}

func raise(at []uint64, i int, to uint64) { at[i] = max(at[i], to) }

// measuredCurve adds the recording up. Its columns are those of the matched
// allocations; what lies between two of them is spread evenly.
func (c *comparison) measuredCurve(out []uint64, column func(int) int) {
	line := timeline.New(c.t, timeline.Options{})
	next := 0 // of measured
	here := column(c.from)
	last := 0 // event of the recording that here is from
	ahead := func(event int) (at, col int) {
		for k := next; k < len(c.measured); k++ {
			if c.partner[k] >= 0 && c.measured[k] >= event {
				return c.measured[k], column(int(c.l.Tensors[c.planned[c.partner[k]]].Birth))
			}
		}
		return c.t.Events.Len(), column(c.to)
	}
	to, col := ahead(0)
	for cur := line.Cursor(); cur.Next(); {
		for cur.Index >= to && to < c.t.Events.Len() {
			here, last = col, to
			for next < len(c.measured) && c.measured[next] <= to {
				next++
			}
			to, col = ahead(to + 1)
		}
		at := here + (col-here)*(cur.Index-last)/max(to-last, 1)
		raise(out, min(max(at, 0), len(out)-1), cur.Totals.Requested)
	}
	for i := 1; i < len(out); i++ { // columns that no event fell into
		if out[i] == 0 {
			out[i] = out[i-1]
		}
	}
}

// phaseText names a phase with its step.
func phaseText(p ledger.Phase) string {
	if p.Step == 0 {
		return p.Name
	}
	return p.Name + " " + strconv.Itoa(p.Step)
}
