package html

import (
	"context"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// subject is the run that is reported on, with the indices over its trace.
type subject struct {
	Input

	trace     *trace.Trace // nil without a snapshot, like the next ones
	line      *timeline.Timeline
	lifetimes *timeline.Lifetimes
	totals    *timeline.TotalsIndex
	layout    *timeline.Layout
	clock     *timeline.Clock
	peaks     *timeline.Peaks
	analysis  *findings.Analysis
	moments   *timeline.Moments

	moment moment
}

// moment is the one that segments and holders are shown at.
type moment struct {
	event  int    // after it; -1 is before the first one
	failed bool   // a request failed then
	when   string // "when it failed"
	at     timeline.Moment
}

func newSubject(ctx context.Context, in Input) (*subject, error) {
	s := &subject{Input: in}
	if in.Run == nil {
		return s, nil
	}
	x, err := in.Run.Indices(ctx)
	if err != nil {
		return nil, err
	}
	s.trace, s.line, s.peaks, s.moments = in.Run.Trace, x.Timeline, x.Peaks, x.Moments
	s.lifetimes, s.totals, s.layout, s.clock, s.analysis = x.Lifetimes, x.Totals, x.Layout, x.Clock, x.Analysis
	s.moment = s.findMoment()
	return s, nil
}

func (s *subject) events() int { return s.trace.Events.Len() }

// findMoment chooses the failure that is explained, else the last one, else the
// peak.
func (s *subject) findMoment() moment {
	last := s.events() - 1
	m := moment{event: last, when: "when the file was written"}
	switch r := s.Explain; {
	case r != nil && r.Failure != nil && r.Failure.Event != nil && *r.Failure.Event <= last:
		m = moment{event: *r.Failure.Event, failed: true, when: "when it failed"}
	case r != nil && r.Failure != nil: // only a message tells of it
		m.failed, m.when = true, "when it failed"
	case last < 0:
	case r == nil && len(s.peaks.OOMs) > 0:
		m = moment{event: s.peaks.OOMs[len(s.peaks.OOMs)-1].Index, failed: true, when: "when a request failed"}
	default:
		m = moment{event: s.analysis.PeakEvent(), when: "at the peak"}
		if s.trace.Partial {
			m.when += " of the events that are there"
		}
	}
	m.at = s.moments.Event(m.event)
	return m
}

// request returns what was asked for and refused at the moment, and what it
// would take of a segment; 0 if nothing was.
func (s *subject) request() uint64 {
	switch r := s.Explain; {
	case !s.moment.failed:
	case r != nil && r.Evidence.Rounded != nil:
		return *r.Evidence.Rounded
	case s.moment.event >= 0 && s.trace.Events.Action.At(s.moment.event) == alloc.ActionOOM:
		return s.trace.Events.Size.At(s.moment.event)
	}
	return 0
}

// limits are the ends of what the cap on reserved memory may have been; 0 if no
// cap is known of.
func (s *subject) limits() (low, high uint64) {
	if s.Explain == nil || s.Explain.Limit.Max == nil {
		return 0, 0
	}
	low, high = *s.Explain.Limit.Max, *s.Explain.Limit.Max
	if m := s.Explain.Limit.Min; m != nil && *m < low {
		low = *m
	}
	return low, high
}

// category names what a block is for.
func (s *subject) category(life int32) string {
	c, _ := s.analysis.CategoryOf(s.lifetimes, int(life))
	return string(c)
}

// site returns where a block was allocated; empty if the file does not say.
func (s *subject) site(id trace.StackID) string {
	site, ok := timeline.SiteOf(s.trace, id)
	if !ok {
		return ""
	}
	return site.String()
}

// begunLate reports whether recording began in the middle of the run.
func (s *subject) begunLate() bool { return s.line != nil && s.line.Start.Kind == start.Rebuilt }

// place says when a peak was.
func (s *subject) place(p timeline.Peak) *timeline.Moment {
	m := s.moments.At(p.Event, p.Time)
	return &m
}
