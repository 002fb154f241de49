package plan

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Against is a plan beside a recording of the run.
type Against struct {
	// Contradictions are what the recording says that cannot be true together.
	Contradictions []string `json:"contradictions"`
	// Least is the smallest size that is compared.
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
	// Parts are the same by part of the run, as far as the recording has it.
	Parts []PartPair `json:"parts"`

	// First is the first allocation that only one of them has; nil if both have
	// all.
	First *FirstPair `json:"first_difference"`

	Peaks []PeakPair `json:"peaks"`
	Terms []TermPair `json:"terms"`
	Curve PairCurve  `json:"curve"`
	Notes []string   `json:"notes"`
}

// PartPair is how much of a part of the run is common: the building of the
// model, a step of training, the prompt or the tokens after it.
type PartPair struct {
	Name    string  `json:"name"`
	Matched uint64  `json:"matched_bytes"`
	Missing uint64  `json:"missing_bytes"`
	Extra   uint64  `json:"extra_bytes"`
	Covered float64 `json:"covered"`
}

// FirstPair is where a plan and a recording part.
type FirstPair struct {
	Change string `json:"change"` // missing or extra
	What   string `json:"what"`
	Where  string `json:"where"`
	Phase  string `json:"phase"`
	Step   int    `json:"step"`
	Bytes  uint64 `json:"bytes"`
	// After is the planned op of the last allocation that both have.
	After string `json:"after"`
}

// PeakPair is a peak as planned and as measured, over what the recording covers.
type PeakPair struct {
	Name     string  `json:"name"`
	Planned  uint64  `json:"planned_bytes"`
	Measured *uint64 `json:"measured_bytes"` // nil if the recording does not have it
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

// leastCompared is the smallest size that is compared: smaller allocations come
// from other segments.
const leastCompared = alloc.SmallMax

// Compare compares a plan with a recording. points is the length of the curves.
func Compare(ctx context.Context, q Question, r *run.Run, points int) (*Against, error) {
	if err := q.prepare(); err != nil {
		return nil, err
	}
	p, _, err := q.plan(ctx, q.Options, 0)
	if err != nil {
		return nil, err
	}
	return p.Compare(ctx, r, points)
}

// Compare compares the ledger with a recording. It may add steps to the ledger.
func (p *Played) Compare(ctx context.Context, r *run.Run, points int) (_ *Against, err error) {
	c := &comparison{ledger: p.Ledger, run: r, trace: r.Trace, out: &Against{Contradictions: []string{}, Least: leastCompared, Notes: []string{}, Terms: []TermPair{}, Parts: []PartPair{}}}
	c.recordedBirths()
	if len(c.measured) == 0 {
		return nil, fmt.Errorf("the recording has no allocation of %s or more: record the whole run, or at least a step", units.Whole(leastCompared))
	}
	c.matchSteps()
	if p.program, err = Program(c.ledger, p.Settings); err != nil {
		return nil, err
	}
	if c.matches == 0 {
		return nil, errors.New("no allocation of the recording has a planned size: it is of another model, batch or sequence")
	}
	c.out.From, c.out.To = phaseText(c.ledger.PhaseAt(c.from)), phaseText(c.ledger.PhaseAt(c.to))
	c.terms()
	if c.out.Covered < 0.5 {
		c.out.Notes = append(c.out.Notes, "most of what was recorded is not planned: the recording seems to be of another model, batch or sequence")
	}
	if c.out.Covered >= 0.5 && c.out.Extra > c.out.Matched/10 {
		c.out.Notes = append(c.out.Notes, "a good part of what is planned was not recorded: the run seems to have had other options")
	}
	if err := c.peaks(ctx, p); err != nil {
		return nil, err
	}
	c.curve(points)
	return c.out, nil
}

// peaks compares the highest totals over what the recording covers.
func (c *comparison) peaks(ctx context.Context, p *Played) error {
	o, err := p.program.Run(ctx, replay.Conditions{Settings: p.Settings, From: c.from})
	if err != nil {
		return err
	}
	h, err := c.run.History(ctx)
	if err != nil {
		return err
	}
	peaks := h.Timeline
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
	if peaks.Start.Kind != start.Recorded {
		c.out.Notes = append(c.out.Notes, "the recording starts mid-run: its peaks include what was there before, whatever that is")
	}
	return nil
}

// phaseText names a phase with its step.
func phaseText(p ledger.Phase) string {
	if p.Step == 0 {
		return p.Name
	}
	return p.Name + " " + strconv.Itoa(p.Step)
}
