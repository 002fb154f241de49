package tenants

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/trace"
)

// member is a run in an arrangement.
type member struct {
	*Run
	conditions replay.Conditions
	host       replay.Host
	device     *sim.Device // that its driver time is counted on
	allocator  *alloc.Allocator
	step       *replay.Stepped

	clock    clock
	made     int // calls, of all passes
	over     bool
	peakLive uint64

	requests, failures, guaranteed int
	retries                        int64
	driver                         time.Duration
}

// clock says when the calls of a run are made.
type clock struct {
	start, scale float64 // by event
	byTime       bool
	first, pass  int64 // by time: the first event, and the length of a pass
}

// newClock returns the clock of a run beside others, of which the longest has so
// many calls.
func newClock(r *Run, by string, longest int) clock {
	p := r.Program
	if by == ByEvent {
		return clock{start: r.Start, scale: float64(longest) / float64(p.Len()*r.passes())}
	}
	times := &p.Trace.Events.Time
	c := clock{start: r.Start, byTime: true, first: times.At(p.Call(0).Event)}
	last := times.At(p.Call(p.Len() - 1).Event)
	if last == trace.NoTime || last < c.first {
		last = c.first
	}
	// The next pass begins after a gap as long as the usual one.
	c.pass = last - c.first + (last-c.first)/int64(p.Len())
	return c
}

// at returns the moment of a call.
func (c *clock) at(r *Run, made int) float64 {
	if !c.byTime {
		return c.start + float64(made)*c.scale
	}
	n := r.Program.Len()
	t := r.Program.Trace.Events.Time.At(r.Program.Call(made % n).Event)
	if t == trace.NoTime || t < c.first {
		t = c.first
	}
	return c.start + float64(t-c.first) + float64(made/n)*float64(c.pass)
}

// played is what became of the runs of an arrangement.
type played struct {
	fails    bool
	peakLive uint64  // of all runs together
	meanLive float64 // over time
}

// stage is an arrangement that is being played.
type stage struct {
	members []*member
	skip    bool
	// stop ends everything at the first failure.
	stop    bool
	retries map[*alloc.Allocator]int64 // counted so far
	// covered reports whether a failed request of so many bytes was within the guarantee.
	covered func(m *member, failure error, size uint64) bool
}

// play makes the calls of all runs, each at its moment; of calls at the same one the
// earlier tenant's come first.
func (s *stage) play(ctx context.Context, by string) (*played, error) {
	longest := 0
	for _, m := range s.members {
		longest = max(longest, m.Program.Len()*m.passes())
	}
	for _, m := range s.members {
		m.clock = newClock(m.Run, by, longest)
		m.conditions.SkipOOM = s.skip
		var err error
		if m.step, err = m.Program.Step(m.conditions, m.host); err != nil {
			return nil, fmt.Errorf("%s: %w", m.File, err)
		}
	}
	out := &played{}
	live, now, area, began := uint64(0), 0.0, 0.0, math.Inf(1)
	for n := 0; ; n++ {
		if n%(1<<14) == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		m, at := s.next()
		if m == nil {
			break
		}
		began = min(began, at)
		area += float64(live) * max(at-max(now, began), 0)
		now = max(now, at)
		before := m.step.Live()
		if err := s.advance(m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.File, err)
		}
		live += m.step.Live() - before
		m.peakLive = max(m.peakLive, m.step.Live())
		out.peakLive = max(out.peakLive, live)
		if m.failures > 0 {
			out.fails = true
			if s.stop {
				break
			}
		}
	}
	if now > began {
		out.meanLive = area / (now - began)
	}
	return out, nil
}

// next returns the run whose turn it is, nil at the end.
func (s *stage) next() (turn *member, at float64) {
	for _, m := range s.members {
		if m.over {
			continue
		}
		if t := m.clock.at(m.Run, m.made); turn == nil || t < at {
			turn, at = m, t
		}
	}
	return turn, at
}

// advance makes a run's next call. A run begins just before its first.
func (s *stage) advance(m *member) error {
	if m.made%m.Program.Len() == 0 {
		begin := m.step.Begin
		if m.made > 0 {
			begin = m.step.Again
		}
		if err := begin(); err != nil {
			return err
		}
	}
	if failed := m.step.Failures() - m.failures; failed > 0 { // at its start
		m.requests += failed
		m.failures += failed
		if err := s.die(m); err != nil || m.over {
			return err
		}
	}
	call := m.Program.Call(m.made % m.Program.Len())
	before := m.device.Cost()
	failure, err := m.step.Next()
	if err != nil {
		return err
	}
	m.made++
	m.over = m.made == m.Program.Len()*m.passes()
	if call.Kind == replay.CallAlloc || call.Kind == replay.CallTry {
		m.requests++
	}
	if cost := m.device.Cost() - before; cost > 0 || failure != nil {
		m.driver += cost
		n := m.allocator.Stats().NumAllocRetries
		m.retries += n - s.retries[m.allocator]
		s.retries[m.allocator] = n
	}
	if failure == nil {
		return nil
	}
	m.failures++
	if s.covered(m, failure, call.Size) {
		m.guaranteed++
	}
	return s.die(m)
}

// die ends a run after a failure, if failures end runs: what it holds is freed.
func (s *stage) die(m *member) error {
	if s.skip {
		return nil
	}
	m.over = true
	return m.step.End()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
