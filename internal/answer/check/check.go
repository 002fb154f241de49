package check

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// Rules are the bounds that a file is held against; nil is no rule. Sizes are
// bytes, shares and growths percent.
type Rules struct {
	MaxReserved, MaxAllocated *uint64
	MaxFragmentation          *float64
	MinHeadroom               *uint64
	Limit                     *uint64 // for MinHeadroom; nil: as the file shows
	Survives                  *uint64
	Settings                  *whatif.Setting // for Survives; nil: the recorded ones
	MaxGrowth                 *float64        // of both peaks against Subject.Old
	MaxLeak                   *uint64         // that a step leaves behind
	MaxRetries                *int64
	MaxOOMs                   *int64 // nil: none, whatever the other rules are
}

// without reports whether no rule is given, but for the failures that are
// allowed.
func (r Rules) without() bool { return r == Rules{MaxOOMs: r.MaxOOMs} }

// Leaks reports whether a rule is about leaks, for which steps must be found.
func (r Rules) Leaks() bool { return r.MaxLeak != nil || r.without() }

// Subject is what the rules are about.
type Subject struct {
	*Measures
	Old *Measures // the file to compare with; nil if there is none
	// Program is needed for Survives only; NoProgram says why there is none.
	Run       *run.Checked
	NoProgram string
}

// The units of a Result.
const (
	Bytes        = "bytes"
	BytesPerStep = "bytes_per_step"
	Count        = "count"
	Percent      = "percent"
)

// The names of the rules.
const (
	MaxReserved        = "max_reserved"
	MaxAllocated       = "max_allocated"
	MaxFragmentation   = "max_fragmentation"
	MinHeadroom        = "min_headroom"
	Survives           = "survives"
	MaxGrowthReserved  = "max_growth_reserved"
	MaxGrowthAllocated = "max_growth_allocated"
	MaxLeak            = "max_leak"
	MaxRetries         = "max_retries"
	MaxOOMs            = "max_ooms"
)

// Report is the answer.
type Report struct {
	Passed bool     `json:"passed"` // all rules hold
	Rules  []Result `json:"rules"`
	Notes  []string `json:"notes"`
}

// Result is one rule and what became of it.
type Result struct {
	Rule  string   `json:"rule"`
	Unit  string   `json:"unit"`
	Value *float64 `json:"value"` // nil if it is not one number in the file
	Bound float64  `json:"bound"`
	// Passed is nil if the file cannot tell.
	Passed *bool  `json:"passed"`
	Detail string `json:"detail"`

	ValueText string `json:"-"`
	BoundText string `json:"-"` // "at most 40.00 GiB"
}

// Unknown reports whether the file leaves the answer to some rule open.
func (r *Report) Unknown() bool {
	for _, x := range r.Rules {
		if x.Passed == nil {
			return true
		}
	}
	return false
}

// Run holds the subject against the rules. Without any, a run fails that leaked,
// that had to release its cache to make room, or in which a request failed. A
// failed request breaks a rule in any case, unless the rules allow it. The error
// is the context's or a *[whatif.SettingError].
func Run(ctx context.Context, s Subject, rules Rules) (*Report, error) {
	r := &Report{Passed: true, Rules: []Result{}, Notes: append([]string{}, s.notes...)}
	if b := rules.MaxReserved; b != nil {
		r.most(MaxReserved, Bytes, s.reserved, float64(*b))
	}
	if b := rules.MaxAllocated; b != nil {
		r.most(MaxAllocated, Bytes, s.allocated, float64(*b))
	}
	if b := rules.MaxFragmentation; b != nil {
		r.most(MaxFragmentation, Percent, s.fragmentation(), *b)
	}
	if b := rules.MinHeadroom; b != nil {
		r.headroom(s.Measures, rules.Limit, float64(*b))
	}
	if b := rules.Survives; b != nil {
		if err := r.survives(ctx, s, *b, rules.Settings); err != nil {
			return nil, err
		}
	}
	if b := rules.MaxGrowth; b != nil && s.Old != nil {
		r.most(MaxGrowthReserved, Percent, growth(s.reserved, s.Old.reserved), *b)
		r.most(MaxGrowthAllocated, Percent, growth(s.allocated, s.Old.allocated), *b)
		for _, n := range s.Old.notes {
			r.Notes = append(r.Notes, "baseline: "+n)
		}
	}
	if b := rules.MaxLeak; b != nil {
		r.most(MaxLeak, BytesPerStep, s.leak, float64(*b))
	}
	if b := rules.MaxRetries; b != nil {
		r.most(MaxRetries, Count, s.retries, float64(*b))
	}
	if rules.without() {
		r.none(MaxLeak, BytesPerStep, s.leak, "leaks")
		r.none(MaxRetries, Count, s.retries, "retries")
	}
	switch b := rules.MaxOOMs; {
	case b != nil:
		r.most(MaxOOMs, Count, s.ooms, float64(*b))
	case rules.without():
		r.most(MaxOOMs, Count, s.ooms, 0)
	default:
		r.none(MaxOOMs, Count, s.ooms, "failed requests")
	}
	for _, x := range r.Rules {
		r.Passed = r.Passed && x.Passed != nil && *x.Passed
	}
	return r, nil
}

// none is a rule that nobody gave: there are to be none. What the file cannot
// tell about it is a note.
func (r *Report) none(rule, unit string, v span, what string) {
	if v.atMost(0) == nil {
		r.Notes = append(r.Notes, what+" are not checked: "+v.why)
		return
	}
	r.most(rule, unit, v, 0)
}

// add notes a rule. side says which side of the bound is allowed.
func (r *Report) add(rule, unit string, v span, bound float64, passed *bool, side, detail string) {
	r.Rules = append(r.Rules, Result{
		Rule: rule, Unit: unit, Value: v.known(), Bound: bound, Passed: passed, Detail: detail,
		ValueText: v.text(unit), BoundText: side + " " + amount(bound, unit),
	})
}

// most is a rule with an upper bound.
func (r *Report) most(rule, unit string, v span, bound float64) {
	if bound == 0 && (unit == Count || unit == BytesPerStep) {
		r.noneOf(rule, unit, v)
		return
	}
	r.add(rule, unit, v, bound, v.atMost(bound), "at most", distance(v, unit, bound))
}

// noneOf is a rule that allows nothing of something.
func (r *Report) noneOf(rule, unit string, v span) {
	passed := v.atMost(0)
	detail, valueText := v.at, v.text(unit)
	if v.exact() && v.low == 0 {
		valueText = "none"
	}
	switch {
	case passed == nil:
		detail = v.why
	case detail == "":
		detail = "none"
		if !*passed {
			detail = "too many"
		}
	}
	r.Rules = append(r.Rules, Result{
		Rule: rule, Unit: unit, Value: v.known(), Passed: passed, Detail: detail,
		ValueText: valueText, BoundText: "none allowed",
	})
}

// distance says by how much a value misses or keeps its bound, or why nobody
// can tell.
func distance(v span, unit string, bound float64) string {
	side := func(by float64) string {
		size := amount(math.Abs(by), unit)
		if unit == Percent {
			size = fmt.Sprintf("%.2f points", math.Abs(by))
		}
		switch {
		case by > 0:
			return size + " above"
		case by < 0:
			return size + " below"
		}
		return "just reached"
	}
	var said string
	switch {
	case v.exact():
		said = side(v.low - bound)
	case v.low > bound:
		said = "at least " + side(v.low-bound)
	case v.high < bound:
		said = "at least " + side(v.high-bound)
	default:
		return v.why
	}
	if v.at != "" {
		said += "; " + v.at
	}
	return said
}

// headroom is a limit less the peak of reserved.
func (r *Report) headroom(m *Measures, limit *uint64, bound float64) {
	l := m.limit
	if limit != nil {
		l = exactly(float64(*limit))
	}
	v := span{low: l.low - m.reserved.high, high: l.high - m.reserved.low, why: m.reserved.why}
	if !l.exact() {
		v.why = l.why + "; give a limit"
	}
	if math.IsNaN(v.low) || math.IsNaN(v.high) {
		v = unknown(v.why)
	}
	detail := distance(v, Bytes, bound)
	if limit != nil && v.exact() {
		detail += fmt.Sprintf("; reserved peak %s of %s", m.reserved.text(Bytes), units.Size(*limit))
	}
	r.add(MinHeadroom, Bytes, v, bound, v.atLeast(bound), "at least", detail)
}

// growth returns how much larger a value is than an old one, in percent.
func growth(now, old span) span {
	if old.low <= 0 || math.IsInf(now.low, -1) {
		v := unknown("the peak of the baseline is 0")
		switch {
		case old.why != "":
			v.why = "baseline: " + old.why
		case now.why != "":
			v.why = now.why
		}
		return v
	}
	v := span{low: 100 * (now.low/old.high - 1), high: 100 * (now.high/old.low - 1)}
	switch {
	case !now.exact():
		v.why = now.why
	case !old.exact():
		v.why = "baseline: " + old.why
	default:
		v.at = fmt.Sprintf("from %s to %s", amount(old.low, Bytes), amount(now.low, Bytes))
	}
	return v
}

// survives replays the program under a limit. The value of a run that passes is
// its peak of reserved; of one that fails, what would have been reserved if the
// request had been served.
func (r *Report) survives(ctx context.Context, s Subject, limit uint64, conf *whatif.Setting) error {
	if s.Run == nil {
		r.add(Survives, Bytes, unknown(s.NoProgram), float64(limit), nil, "under", s.NoProgram)
		return nil
	}
	// To survive with so much means not to hold more either: expandable segments
	// may go beyond a limit, but not beyond a device.
	q := whatif.Question{Limit: whatif.GivenLimit(s.Run, limit), Memory: whatif.GivenMemory(limit)}
	if conf != nil {
		q.Settings = []whatif.Setting{*conf}
	}
	a, err := whatif.Ask(ctx, s.Run, q)
	switch {
	case err != nil:
		var condition *replay.ConditionError
		var setting *whatif.SettingError
		if errors.As(err, &condition) && !errors.As(err, &setting) {
			r.add(Survives, Bytes, unknown(err.Error()), float64(limit), nil, "under", err.Error())
			return nil
		}
		return err
	case a.Interrupted:
		return context.Cause(ctx)
	}
	for _, n := range a.Notes {
		r.Notes = append(r.Notes, "survives: "+n)
	}
	r.survived(s.Run.Trace, a.Results[len(a.Results)-1], limit)
	if c := a.SelfCheck; !c.Complete {
		r.Notes = append(r.Notes, "survives: "+c.Note)
		if c.Identical < c.Events {
			last := &r.Rules[len(r.Rules)-1]
			if last.Passed != nil && *last.Passed {
				last.Passed, last.Value = nil, nil // nobody can tell what the model does not follow
			}
			last.Detail += fmt.Sprintf("; the model reproduces only %s of %s recorded events", units.Count(int64(c.Identical)), units.Count(int64(c.Events)))
		}
	}
	return nil
}

func (r *Report) survived(t *trace.Trace, got *whatif.Result, limit uint64) {
	v := exactly(float64(got.PeakReserved))
	name := "under PyTorch's defaults"
	switch {
	case got.Recorded:
		name = "under the recorded settings"
	case got.Settings != "":
		name = "under " + got.Settings
	}
	passed := verdict(!got.Fails)
	detail := fmt.Sprintf("passes %s, %s below at its peak", name, units.Size(limit-min(limit, got.PeakReserved)))
	if f := got.First; f != nil && f.AtStart {
		v = exactly(float64(f.Reserved))
		detail = fmt.Sprintf("fails %s: %s is reserved before the first event and cannot be released", name, units.Size(f.Reserved))
	} else if f != nil {
		v = exactly(float64(f.Reserved + f.Segment))
		detail = fmt.Sprintf("fails %s at event %s: a request for %s, with %s reserved and %s allocated", name,
			units.Count(int64(*f.Event)), units.Size(f.Size), units.Size(f.Reserved), units.Size(f.Allocated))
		if f.Reserved+f.Segment > limit {
			detail += fmt.Sprintf("; %s too much", units.Size(f.Reserved+f.Segment-limit))
		}
		if f.Caught != nil {
			detail += "; this failure may be caught, by " + f.Caught.By
		}
	} else if t.Partial {
		passed = nil
		v = atLeast(v.low, "")
		detail = "the recorded events pass, but the file ends within them"
	}
	r.add(Survives, Bytes, v, float64(limit), passed, "under", detail)
}
