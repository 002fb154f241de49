package run

import (
	"context"
	"time"
)

// phases measures the command until it has ended or is to be ended.
func (m *measuring) phases(ctx context.Context, ready, done <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !m.spec.Service() {
		m.until(ctx, nil, 0)
		return
	}
	if r := m.spec.Ready; r != nil {
		w := r.wait(ctx, ready)
		switch m.until(ctx, w.ready, m.spec.ReadyWithin) {
		case timeout:
			m.fail("%s", w.notReady(m.spec.ReadyWithin))
			return
		case ended:
			m.fail("it ended %s it was ready", w.beforeOrWhen())
			return
		case interrupted:
			return
		}
	}
	m.begun(Driven)
	m.checkMalloc()
	m.gate.Close()
	m.readyAt = time.Since(m.begin)
	if !m.drive(ctx, done) {
		return
	}
	m.run.Wall = time.Since(m.begin) - m.readyAt
	m.begun(Settling)
	m.checkMalloc()
	if m.spec.Settle == 0 {
		return
	}
	if m.until(ctx, nil, m.spec.Settle) == ended {
		m.fail("it ended while it was left alone")
		return
	}
	m.sample(true)
	m.run.Settled = true
}

// begun marks a phase, with a sample at its beginning.
func (m *measuring) begun(p Phase) {
	m.phase = p
	m.sample(true)
}

// drive lets the load run, and reports whether the run goes on.
func (m *measuring) drive(ctx context.Context, done <-chan struct{}) bool {
	var over <-chan struct{}
	var load *process
	var loadOutput *output
	switch {
	case m.spec.Load != "":
		out, _, w, err := newOutput()
		if err != nil {
			m.fail("the load cannot be started: %v", err)
			return false
		}
		load, err = startProcess([]string{"/bin/sh", "-c", m.spec.Load}, m.spec.Environ, m.spec.Dir, nil, w, !m.spec.unadopted)
		w.Close()
		loadOutput = out
		if err != nil {
			out.close()
			m.fail("the load cannot be started: %v", err)
			return false
		}
		over = load.ended
	case m.spec.Done != "":
		over = done
	case m.spec.For == 0:
		return true
	}
	why := m.until(ctx, over, m.spec.For)
	if load != nil {
		terminated, _, left := load.finish(m.deadline, interruptedGrace)
		loadOutput.close()
		for _, p := range left {
			p.OfLoad = true
			m.run.Left = append(m.run.Left, p)
		}
		// A load that was cut off has no exit code of its own.
		if e := load.exit(); why == happened || (!terminated && e != nil) {
			m.run.Load = e
		}
		if e := m.run.Load; e != nil && (e.Code != 0 || e.Signal != "") {
			m.fail("the load ended with %s%s", e, after(": ", loadOutput.lastLine()))
			return false
		}
	}
	switch why {
	case ended:
		m.endedEarly(load != nil)
		return false
	case interrupted:
		return false
	}
	return true
}

// endedEarly handles a command that ended before it was to be stopped. That is an
// error only while it was driven; otherwise it was measured to its end.
func (m *measuring) endedEarly(driven bool) {
	if driven || m.spec.Done != "" {
		m.fail("it ended while it was driven")
	}
}

// outcome says why a wait ended.
type outcome int

const (
	happened outcome = iota // what was waited for
	timeout
	ended // the command
	interrupted
)

// until takes samples until the event, the end of the command, or for d; 0 means
// no time limit.
func (m *measuring) until(ctx context.Context, event <-chan struct{}, d time.Duration) outcome {
	var limit <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		limit = t.C
	}
	next := time.NewTimer(m.pause())
	defer next.Stop()
	for {
		select {
		case <-event:
			return happened
		case <-m.ended:
			if m.hasEnded() {
				return ended
			}
		case <-limit:
			return timeout
		case <-ctx.Done():
			m.run.Cut = true
			return interrupted
		case <-next.C:
			next.Reset(m.pause())
			m.sample(false)
			if m.verify.due(time.Since(m.begin)) {
				m.checkMalloc()
			}
		}
	}
}

// hasEnded reports whether the command has ended, once its first process has. A
// service may have gone to the background; then it ends when the daemon does.
func (m *measuring) hasEnded() bool {
	p := m.process
	m.gone = m.gone || !m.spec.Service() || p.tree == nil || !p.success || !p.tree.background()
	if !m.gone {
		m.ended = p.tree.daemonEnded
	}
	return m.gone
}

// firstInterval is between the first samples.
const firstInterval = 5 * time.Millisecond

// pause is the time until the next sample. A command may end at any moment, and
// its end needs several samples: so while it is young they are close, a fiftieth
// of its age apart. While it settles they are evenly spaced, since the median is
// taken over time.
func (m *measuring) pause() time.Duration {
	if m.phase == Settling {
		return m.spec.Interval
	}
	return min(m.spec.Interval, max(firstInterval, time.Since(m.begin)/50))
}
