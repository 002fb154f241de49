package tune

import (
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Answer is a Result in the form of `ashlar tune --json`.
type Answer struct {
	SelfCheck    whatif.SelfCheck `json:"self_check"`
	Goal         Goal             `json:"goal"`
	Limit        whatif.Limit     `json:"limit"`
	DeviceMemory whatif.Memory    `json:"device_memory"`
	Current      *Choice          `json:"current"`
	Recommended  *Choice          `json:"recommended"`
	// AfterUpgrade is better, but has a key that the PyTorch of the recording does
	// not know; nil if nothing is.
	AfterUpgrade *Choice `json:"after_upgrade"`
	// Others were tried on the variations too: expandable segments, and what
	// came next.
	Others     []*Choice `json:"others"`
	Variations int       `json:"variations"`
	Evaluated  int       `json:"evaluated"`
	// Finished: all settings were tried. CutOff: time ended the search.
	Finished    bool   `json:"finished"`
	CutOff      bool   `json:"cut_off"`
	Interrupted bool   `json:"interrupted"`
	LowerBound  uint64 `json:"lower_bound_bytes"`
	// Span is the recorded time after the warm-up; nil if it is not known.
	Span    *float64 `json:"warm_seconds"`
	Seconds float64  `json:"elapsed_seconds"`
	Notes   []string `json:"notes"`
}

// Choice is a setting and its figures. Those of a run are without a limit.
type Choice struct {
	Settings      string  `json:"settings"`
	Export        string  `json:"export"`
	SmallestLimit *uint64 `json:"smallest_limit_bytes"` // nil: it passes under none
	Need          *uint64 `json:"need_bytes"`
	PeakReserved  uint64  `json:"peak_reserved_bytes"`
	DriverMS      float64 `json:"estimated_driver_ms"`
	// WarmCalls and WarmMS are of the driver after the second step.
	WarmCalls int64   `json:"warm_driver_calls"`
	WarmMS    float64 `json:"warm_driver_ms"`
	// StartReleased is what had to be released at the start of the runs that show
	// SmallestLimit, as in [whatif.Result].
	StartReleased uint64 `json:"start_released_bytes"`
	// UnderLimit is the run under the limit of the answer; nil without one.
	UnderLimit *whatif.Result `json:"under_limit"`
	// Value is the figure that the goal is about, nil if the run fails; Worst is
	// the variation on which it does worst.
	Value    *uint64      `json:"value"`
	Worst    *WorstChoice `json:"worst"`
	Recorded bool         `json:"recorded"`
	Reason   string       `json:"reason,omitempty"`
	Requires string       `json:"requires,omitempty"` // what it takes to use the settings
}

// WorstChoice is a variation of the run and the goal's figure there, with the
// settings and with the recorded ones; nil where the variation fails.
type WorstChoice struct {
	Variation string  `json:"variation"`
	Value     *uint64 `json:"value"`
	Recorded  *uint64 `json:"recorded_value"`
}

// NewChoice describes a setting whose figures are known.
func NewChoice(r *run.Checked, c *Candidate) *Choice {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	of := answer.AllocatorOf(r.Program.Trace)
	_, requires := of.Takes(c.Settings)
	out := &Choice{
		Settings: c.Settings.String(), Export: of.Export(c.Settings), PeakReserved: c.PeakReserved,
		DriverMS: ms(c.DriverTime), WarmCalls: c.Warm.Calls, WarmMS: ms(c.Warm.Time), Requires: requires,
	}
	if c.Need > 0 {
		out.SmallestLimit, out.Need = &c.SmallestLimit, &c.Need
		if c.SmallestLimit > 0 && c.SmallestLimit < r.Program.Start.Reserved() {
			out.StartReleased, _ = r.Program.StartCache() // the program was run, so it can be
		}
	}
	if c.Limited != nil {
		out.UnderLimit = whatif.NewResult(r, c.Limited)
	}
	if w := c.Worst; w != nil {
		out.Worst = &WorstChoice{Variation: w.Variation, Value: unless(w.Fails, w.Value), Recorded: unless(w.RecordedFails, w.Recorded)}
	}
	return out
}

// unless returns a figure that a failed run does not have.
func unless(fails bool, n uint64) *uint64 {
	if fails {
		return nil
	}
	return &n
}

// released returns what was released at the start of the runs that show the
// figures.
func (c *Choice) released() uint64 {
	if c.UnderLimit != nil {
		return max(c.StartReleased, c.UnderLimit.StartReleased)
	}
	return c.StartReleased
}

// NewAnswer describes a result.
func NewAnswer(of *run.Checked, r *Result, limit whatif.Limit, memory whatif.Memory) *Answer {
	a := &Answer{
		SelfCheck: whatif.NewSelfCheck(of.Program), Goal: r.Goal, Limit: limit, DeviceMemory: memory, Others: []*Choice{},
		Variations: r.Variations, Evaluated: r.Evaluated, Finished: r.Finished, CutOff: r.CutOff, LowerBound: r.LowerBound,
		Seconds: r.Elapsed.Round(time.Millisecond).Seconds(), Notes: whatif.RestsOn(of.Program),
	}
	if r.Span > 0 {
		seconds := r.Span.Seconds()
		a.Span = &seconds
	}
	choice := func(c *Candidate) *Choice {
		out := NewChoice(of, c)
		out.Recorded = c == r.Current
		value, passes := r.Goal.of(c)
		out.Value = unless(!passes, value)
		return out
	}
	a.Current, a.Recommended = choice(r.Current), choice(r.Recommended)
	a.Recommended.Reason = a.reason()
	if r.Recommended.Settings.GarbageCollectionThreshold > 0 {
		a.Notes = append(a.Notes, "garbage_collection_threshold works only under a limit, set by torch.cuda.set_per_process_memory_fraction or per_process_memory_fraction")
	}
	if limit.Bytes == nil && r.Recommended.PeakReserved > r.Current.PeakReserved {
		a.Notes = append(a.Notes, fmt.Sprintf("set the limit too: without one these settings reserve %s, the recorded ones %s",
			units.Size(r.Recommended.PeakReserved), units.Size(r.Current.PeakReserved)))
	}
	for _, c := range r.Others {
		a.Others = append(a.Others, choice(c))
	}
	if r.AfterUpgrade != nil {
		a.AfterUpgrade = choice(r.AfterUpgrade)
	}
	released := max(a.Current.released(), a.Recommended.released())
	for _, c := range a.Others {
		released = max(released, c.released())
	}
	if released > 0 {
		a.Notes = append(a.Notes, whatif.ReleasedAtStart(of.Program, released))
	}
	return a
}

// Number writes a figure of the goal.
func (g Goal) Number(n *uint64) string {
	switch {
	case n == nil:
		return "fails"
	case g == FewestCalls:
		return units.Count(int64(*n))
	}
	return units.SizeUp(*n)
}

// amount writes a figure of the goal with what it counts.
func (g Goal) amount(n *uint64) string {
	switch text := g.Number(n); {
	case g != FewestCalls || n == nil:
		return text
	case *n == 1:
		return text + " driver call"
	default:
		return text + " driver calls"
	}
}

// verb is what a run does with the goal's figure.
func (g Goal) verb() string {
	switch g {
	case SmallestLimit:
		return "passes with"
	case FewestCalls:
		return "makes"
	}
	return "reserves"
}

// Achieves says what the run does with settings.
func (a *Answer) Achieves(c *Choice) string {
	said := fmt.Sprintf("%s %s", a.Goal.verb(), a.Goal.amount(c.Value))
	if r := a.Recommended; c.Value != nil && r.Value != nil {
		said += fmt.Sprintf(", %s than with the recommended settings", less(*r.Value, *c.Value))
	}
	return said + "."
}

// reason says in one sentence what the recommended settings gain.
func (a *Answer) reason() string {
	r, g := a.Recommended, a.Goal
	what := fmt.Sprintf("the run %s %s", g.verb(), g.amount(r.Value))
	if g == FewestCalls {
		what += " after the warm-up"
	}
	switch {
	case r.Value == nil && a.Limit.Bytes != nil:
		return "no setting that was tried lets the run pass under this limit"
	case r.Value == nil:
		return "no setting lets the run pass on a device of this size"
	case a.Current == r || r.Recorded:
		return fmt.Sprintf("%s; no setting that was tried is better by more than %.0f %% on the recording and its variations", what, 100*near)
	case a.Current.Value == nil:
		return what + "; with the recorded settings it fails"
	}
	text := fmt.Sprintf("%s instead of %s, %s", what, g.amount(a.Current.Value), less(*a.Current.Value, *r.Value))
	if w := r.Worst; w != nil {
		switch {
		case w.Value == nil:
			text += fmt.Sprintf("; on the worst variation (%s) it fails", w.Variation)
		case w.Recorded == nil:
			text += fmt.Sprintf("; on the worst variation (%s) %s, where the recorded settings fail", w.Variation, g.amount(w.Value))
		default:
			text += fmt.Sprintf("; on the worst variation (%s) %s instead of %s, %s", w.Variation, g.amount(w.Value), g.amount(w.Recorded), less(*w.Recorded, *w.Value))
		}
	}
	return text
}

// less says how much less a figure is than another.
func less(was, is uint64) string {
	if was == 0 {
		return "no less"
	}
	part := 100 * (1 - float64(is)/float64(was))
	if part < 0 {
		return fmt.Sprintf("%.1f %% more", -part)
	}
	return fmt.Sprintf("%.1f %% less", part)
}
