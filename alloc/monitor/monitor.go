package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
)

// Options say what a monitor does. High must be set.
type Options struct {
	// Interval is the time between two samples of Run; 0 is a second.
	Interval time.Duration

	Measure Measure
	High    float64 // a share above it raises the alarm; below 1, which no share exceeds
	Low     float64 // a share below it ends the alarm; 0 is nine tenths of High
	// MinReserved is how much must be reserved for an alarm: a large share of
	// little memory is little memory. An alarm ends when less is reserved, whatever
	// the share, as after a release of most of it. 0 means no minimum.
	MinReserved uint64

	// Notify is called when an alarm is raised or ends, and after every release. It
	// runs on the goroutine of the check and may use the monitor and the
	// allocator.
	Notify func(Report)

	// Release empties the cache during an alarm.
	Release    bool
	MinRelease uint64        // if at least this much would come back
	MinPause   time.Duration // and so long after the last release; 0 is 30 seconds
}

// Report is what a check found and did.
type Report struct {
	Sample  Sample  // after the release, if there was one
	Share   float64 // of the measure, in that sample
	Alarm   bool    // it is on
	Raised  bool    // by this check, even if the release ended it at once
	Changed bool    // Alarm is not what it was before this check

	Before        *Sample // the release; nil if there was none
	ReleasedBytes uint64
	Err           error // why the release failed
}

// Counters say what a monitor has done so far.
type Counters struct {
	Samples       uint64 `json:"samples"`
	Alarms        uint64 `json:"alarms"`
	Releases      uint64 `json:"releases"`
	ReleasedBytes uint64 `json:"released_bytes"`
	// Postponed counts checks that would have released but for a graph capture
	// or a pool that received allocations.
	Postponed uint64 `json:"postponed"`
	Failures  uint64 `json:"failures"` // releases that the driver refused
}

// Monitor watches one allocator. It is safe for concurrent use.
type Monitor struct {
	a *alloc.Allocator
	o Options

	mu       sync.Mutex
	alarm    bool
	released time.Time // the last try
	counters Counters
}

// New makes a monitor. It does nothing before Check or Run.
func New(a *alloc.Allocator, o Options) (*Monitor, error) {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.MinPause == 0 {
		o.MinPause = 30 * time.Second
	}
	if o.Low == 0 {
		o.Low = 0.9 * o.High
	}
	switch {
	case !(o.High > 0 && o.High < 1):
		return nil, fmt.Errorf("monitor: High is %v, it must be a share above 0 and below 1", o.High)
	case !(o.Low > 0 && o.Low <= o.High):
		return nil, fmt.Errorf("monitor: Low is %v, it must be above 0 and at most High, %v", o.Low, o.High)
	case o.Measure >= measures:
		return nil, fmt.Errorf("monitor: there is no measure %d", o.Measure)
	case o.Interval < 0 || o.MinPause < 0:
		return nil, errors.New("monitor: Interval and MinPause cannot be negative")
	}
	return &Monitor{a: a, o: o}, nil
}

// Run checks every Interval until the context ends, and returns why it did.
func (m *Monitor) Run(ctx context.Context) error {
	tick := time.NewTicker(m.o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			m.Check()
		}
	}
}

// Check takes one sample now, raises or ends the alarm, and releases memory if
// that is due.
func (m *Monitor) Check() Report {
	m.mu.Lock()
	before := m.alarm
	r := m.sample()
	if r.Alarm && m.o.Release {
		m.release(&r)
	}
	r.Changed = r.Alarm != before
	r.Raised = !before && (r.Alarm || r.Before != nil) // a release needs an alarm
	if r.Raised {
		m.counters.Alarms++
	}
	m.mu.Unlock()
	if m.o.Notify != nil && (r.Changed || r.Before != nil) {
		m.o.Notify(r)
	}
	return r
}

// sample takes a sample and moves the alarm.
func (m *Monitor) sample() Report {
	m.counters.Samples++
	s := NewSample(m.a)
	share := s.Share(m.o.Measure)
	switch {
	case s.ReservedBytes < m.o.MinReserved || share < m.o.Low:
		m.alarm = false
	case share > m.o.High:
		m.alarm = true
	}
	return Report{Sample: s, Share: share, Alarm: m.alarm}
}

// release empties the cache if it is time and worth while. Whether it is worth
// while, and allowed, the allocator decides again under its lock.
func (m *Monitor) release(r *Report) {
	now := r.Sample.Time
	if !m.released.IsZero() && now.Sub(m.released) < m.o.MinPause {
		return
	}
	if r.Sample.ReleasableBytes == 0 || r.Sample.ReleasableBytes < m.o.MinRelease {
		return
	}
	released, err := m.a.Trim(m.o.MinRelease)
	var route *alloc.RouteActiveError
	if errors.As(err, &route) {
		m.counters.Postponed++
		return
	}
	if released == 0 && err == nil {
		return // the program was faster
	}
	m.released = now
	m.counters.ReleasedBytes += released
	if err != nil {
		m.counters.Failures++
	} else {
		m.counters.Releases++
	}
	before := r.Sample
	*r = m.sample()
	r.Before, r.ReleasedBytes, r.Err = &before, released, err
}

// Counters returns the counters as they are now.
func (m *Monitor) Counters() Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counters
}
