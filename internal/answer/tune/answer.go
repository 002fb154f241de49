package tune

import (
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/run"
)

// Answer is a Result in the form of `ashlar tune --json`.
type Answer struct {
	SelfCheck    whatif.SelfCheck `json:"self_check"`
	Limit        whatif.Limit     `json:"limit"`
	DeviceMemory whatif.Memory    `json:"device_memory"`
	Current      *Choice          `json:"current"`
	Recommended  *Choice          `json:"recommended"`
	Front        []*Choice        `json:"front"`
	// FrontComplete: every setting that was evaluated was held against the front.
	FrontComplete bool     `json:"front_complete"`
	Evaluated     int      `json:"evaluated"`
	Finished      bool     `json:"finished"`
	Interrupted   bool     `json:"interrupted"`
	LowerBound    uint64   `json:"lower_bound_bytes"`
	Seconds       float64  `json:"elapsed_seconds"`
	Notes         []string `json:"notes"`
}

// Choice is a setting and its figures. Those of a run are without a limit.
type Choice struct {
	Settings      string  `json:"settings"`
	Export        string  `json:"export"`
	SmallestLimit *uint64 `json:"smallest_limit_bytes"` // nil: it passes under none
	Need          *uint64 `json:"need_bytes"`
	PeakReserved  uint64  `json:"peak_reserved_bytes"`
	DriverMS      float64 `json:"estimated_driver_ms"`
	// StartReleased is what had to be released at the start of the runs that show
	// SmallestLimit, as in [whatif.Result].
	StartReleased uint64 `json:"start_released_bytes"`
	// UnderLimit is the run under the limit of the answer; nil without one.
	UnderLimit *whatif.Result `json:"under_limit"`
	Recorded   bool           `json:"recorded"`
	Reason     string         `json:"reason,omitempty"`
	Requires   string         `json:"requires,omitempty"` // what it takes to use the settings
}

// NewChoice describes a setting whose figures are known.
func NewChoice(r *run.Checked, c *Candidate) *Choice {
	out := &Choice{
		Settings: c.Settings.String(), Export: c.Settings.Export(), PeakReserved: c.PeakReserved,
		DriverMS: float64(c.DriverTime.Microseconds()) / 1e3, Requires: Requires(c.Settings),
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
	return out
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
		SelfCheck: whatif.NewSelfCheck(of.Program), Limit: limit, DeviceMemory: memory,
		Evaluated: r.Evaluated, Finished: r.Finished, FrontComplete: r.FrontComplete, LowerBound: r.LowerBound,
		Seconds: r.Elapsed.Round(time.Millisecond).Seconds(), Notes: whatif.RestsOn(of.Program), Front: []*Choice{},
	}
	choice := func(c *Candidate) *Choice {
		out := NewChoice(of, c)
		out.Recorded = c == r.Current
		return out
	}
	a.Current, a.Recommended = choice(r.Current), choice(r.Recommended)
	a.Recommended.Reason = r.Reason
	if r.Recommended.Settings.GarbageCollectionThreshold > 0 {
		a.Notes = append(a.Notes, "garbage_collection_threshold works only under a limit, set by torch.cuda.set_per_process_memory_fraction or per_process_memory_fraction")
	}
	for _, c := range r.Front {
		a.Front = append(a.Front, choice(c))
	}
	released := max(a.Current.released(), a.Recommended.released())
	for _, c := range a.Front {
		released = max(released, c.released())
	}
	if released > 0 {
		a.Notes = append(a.Notes, whatif.ReleasedAtStart(of.Program, released))
	}
	return a
}
