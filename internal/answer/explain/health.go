package explain

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// Health describes a run in which nothing failed.
type Health struct {
	PeakReserved      uint64   `json:"peak_reserved_bytes"`
	PeakAllocated     uint64   `json:"peak_allocated_bytes"`
	AtLeast           bool     `json:"peaks_at_least"`        // the file ends within its events: it may have been more
	Fragmentation     *float64 `json:"fragmentation"`         // 1 - peak allocated / peak reserved; nil if these are not known
	FragmentationPeak *float64 `json:"fragmentation_at_peak"` // of reserved memory, when reserved was highest
	Headroom          *uint64  `json:"headroom_bytes"`        // limit - peak reserved; nil if the limit is not known or lower
	// Survives reports whether the run passes under the limit that was given,
	// and FailsAt where not; nil if none was given.
	Survives *bool `json:"survives_limit"`
	FailsAt  *int  `json:"fails_at_event"`
	Retries  int64 `json:"num_alloc_retries"`
	// RetriedFor are the requests for which the cache was released, by call
	// stack, the most frequent first.
	RetriedFor []Retry `json:"retried_for"`
	// Growth is how much more is live at the end of the last step than of the
	// second; nil without steps.
	Growth *int64 `json:"growth_bytes"`
	// EmptyCache are the calls of empty_cache() inside steps; nil if there are none.
	EmptyCache *EmptyCacheCalls `json:"empty_cache_in_steps"`
	// Releasable is what empty_cache() would release at the end of the file; nil
	// if the state there is not known.
	Releasable *uint64 `json:"releasable_bytes"`
	// Smaller are settings with which less is reserved at the peak, the least first.
	Smaller []Smaller `json:"could_be_smaller"`
	// DriverMS estimates how long the driver was busy; nil without a replay.
	DriverMS *float64 `json:"estimated_driver_ms"`
}

// healthy reports on a run in which nothing failed.
func (e *explainer) healthy() error {
	r := e.report
	r.Trigger, r.Confidence = None, Certain
	switch {
	case e.trace.Events.Len() == 0 || e.trace.Partial:
		r.Confidence = Open // what failed, if anything did, is not in the file
	case !r.SelfCheck.Complete:
		r.Confidence = Likely
	}
	given := e.Limit
	e.Limit = 0 // nothing failed under it: what would is another question
	e.findLimit()
	e.Limit = given
	c := e.conditions(e.limits.high)
	o, err := e.program.Run(e.ctx, c)
	if err != nil {
		return err
	}
	h := &Health{
		PeakReserved: o.Reserved.Bytes, PeakAllocated: o.Allocated.Bytes, Retries: o.Retries, DriverMS: ms(o),
		RetriedFor: []Retry{}, Smaller: []Smaller{},
	}
	if err := e.replays(h, c, o); err != nil {
		return err
	}
	state := timeline.NewState(e.trace)
	if h.AtLeast = e.trace.Partial; h.AtLeast && state.Segments > 0 {
		h.atLeast(state)
	}
	if !h.AtLeast {
		h.Fragmentation = timeline.PeakFragmentation(h.PeakReserved, h.PeakAllocated)
	}
	under := ""
	if given > 0 {
		if under, err = e.underGiven(h); err != nil {
			return err
		}
	}
	if l := e.limits; l.high > 0 && l.low == l.high && l.high >= h.PeakReserved && !h.AtLeast {
		head := l.high - h.PeakReserved
		h.Headroom = &head
	}
	r.Health = h
	end := uint64(o.Stats.AllocatedBytes.All.Current)
	reserved := uint64(o.Stats.ReservedBytes.All.Current)
	free := reserved - min(reserved, uint64(o.Stats.ActiveBytes.All.Current))
	pending := uint64(o.Stats.ActiveBytes.All.Current) - end
	if h.AtLeast && state.Segments > 0 { // of a later moment than the events that are there
		end, reserved, free, pending = state.Allocated, state.Reserved, state.Free, state.Pending
	}
	r.Evidence = Evidence{Live: &end, Reserved: &reserved, Free: &free, Pending: &pending}
	if e.trace.Events.Len() == 0 {
		r.Summary = fmt.Sprintf("The file has no events, so it does not show whether a request failed. At its end %s is allocated and %s reserved.",
			units.Size(end), units.Size(reserved))
		return nil
	}
	where, most := "in this file", "At most"
	if e.trace.Partial {
		where, most = "in the part of the file that is there", "At least"
	}
	r.Summary = fmt.Sprintf("Nothing failed %s. %s %s was allocated and %s reserved", where, most, units.Size(h.PeakAllocated), units.Size(h.PeakReserved))
	if h.Fragmentation != nil {
		r.Summary += fmt.Sprintf(": a fragmentation of %.1f %%", 100**h.Fragmentation)
	}
	if e.trace.Partial {
		r.Summary += fmt.Sprintf("; within the events, at most %s and %s", units.Size(o.Allocated.Bytes), units.Size(o.Reserved.Bytes))
	}
	if h.Retries > 0 {
		r.Summary += fmt.Sprintf("; the cache was released %s to make room", times(uint64(h.Retries)))
	}
	r.Summary += "." + under
	return nil
}

// atLeast raises the peaks to the final segments of a file that ends within its
// events.
func (h *Health) atLeast(s *timeline.State) {
	h.PeakAllocated = max(h.PeakAllocated, s.Allocated)
	if s.Reserved > h.PeakReserved {
		h.PeakReserved = s.Reserved
		part := 1 - float64(s.Allocated)/float64(s.Reserved)
		h.FragmentationPeak = &part
	}
}

// underGiven says what the limit that was given would have done.
func (e *explainer) underGiven(h *Health) (string, error) {
	e.setLimit(limitRange{e.Limit, e.Limit, whatif.Given})
	o, err := e.program.Run(e.ctx, e.conditions(e.Limit))
	if err != nil {
		return "", err
	}
	survives := !o.Fails
	h.Survives = &survives
	switch {
	case survives && o.Retries > h.Retries:
		return fmt.Sprintf(" Under the given limit, %s, it passes too; the cache is released %s.", units.Size(e.Limit), times(uint64(o.Retries))), nil
	case survives && o.StartReleased > 0:
		return fmt.Sprintf(" Under the given limit, %s, it passes too, if what was cached before its first event is released.", units.Size(e.Limit)), nil
	case survives:
		return "", nil
	case o.First.AtStart:
		return fmt.Sprintf(" Under the given limit, %s, it would not reach its first event.", units.Size(e.Limit)), nil
	}
	h.FailsAt = &o.First.Event
	return fmt.Sprintf(" Under the given limit, %s, a request for %s at event %s fails, with %s allocated; ashlar tune finds settings that pass, if any do.",
		units.Size(e.Limit), units.Size(o.First.Requested), units.Count(int64(o.First.Event)), units.Size(o.First.Allocated)), nil
}

// believed compares the settings that the user believes in with the recorded
// ones.
func (e *explainer) believed() {
	if e.Believed == nil {
		if e.Facts == nil {
			return
		}
		text, ok := e.Facts.Conf()
		if !ok {
			return
		}
		e.Believed = &text
	}
	want, skipped, err := settings.ParseKnown(*e.Believed)
	if err != nil {
		e.report.Notes = append(e.report.Notes, (&whatif.SettingError{Conf: *e.Believed, Err: err}).Error())
		return
	}
	if len(skipped) > 0 {
		e.report.Notes = append(e.report.Notes, whatif.SkippedText(*e.Believed, skipped))
	}
	if !e.trace.Settings.Known {
		e.report.Notes = append(e.report.Notes, "the file does not have the settings that were in force, so it cannot show whether "+*e.Believed+" was")
		return
	}
	got := e.program.Settings
	want.Backend = got.Backend
	if want == got {
		return
	}
	e.report.Findings = append(e.report.Findings, Finding{
		Kind: Ignored, Steps: []int{}, Parts: []Block{}, Confidence: Certain,
		Detail: fmt.Sprintf("the settings %q were expected, but the file has %q: they were ignored, set too late, or set in another process",
			*e.Believed, got.String()),
	})
}
