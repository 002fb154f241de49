package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/detect"
	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

// Phase is a part of a run.
type Phase string

// The phases. A command that ends is in the first all the time.
const (
	Starting Phase = "start"
	Driven   Phase = "load"
	Settling Phase = "settle"
)

// Point is the memory of the whole tree at one moment.
type Point struct {
	At            time.Duration // since the start
	Phase         Phase
	Left          int // processes that have ended since the point before
	RSSBytes      uint64
	PSSBytes      uint64 // 0 in most points: it is expensive to read
	LazyFreeBytes uint64 // known where PSSBytes is
}

// Run is one run of the command under one variant.
type Run struct {
	Variant   string
	Points    []Point
	Exit      *Exit         // nil if it was stopped
	Ended     time.Duration // when it ended by itself, since the start
	LastLine  string        // that it printed, if it failed
	Settled   bool          // it was left alone at the end
	Killed    bool          // it ignored SIGTERM
	Cut       bool          // the user interrupted it before it was measured
	Left      []Process
	Found     *detect.Result // nil if it could not be looked at
	Verified  bool
	NoEffect  bool  // a preload was without effect
	Lonely    bool  // its largest process lacks the background thread of the first
	Load      *Exit // of the load; nil if there was none, or it was stopped
	Err       string
	CPU, Wall time.Duration
	Peak      uint64
	Faults    uint64
	Switches  uint64          // of contexts
	Inside    *variant.Inside // at its end; nil if malloc did not tell
	processes int             // the most at a time
}

// Exit is how a command ended by itself.
type Exit struct {
	Code   int
	Signal string // empty: none
}

// one makes one run. Errors of the command are in the run.
func (s *Spec) one(ctx context.Context, v *variant.Ready) (*Run, error) {
	r := &Run{Variant: v.Name}
	if s.Ready != nil && s.Ready.URL != "" {
		if ok, _ := s.Ready.ask(ctx); ok {
			r.Err = s.Ready.URL + " answers before the command was started: something else is running there"
			return r, nil
		}
	}
	environ, _ := v.Environ(s.Environ)
	if s.Inside != "" {
		folder, err := os.MkdirTemp(filepath.Dir(s.Inside), "inside-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(folder)
		environ = variant.WithInside(environ, s.Inside, folder)
		defer func() {
			if in, ok := variant.ReadInside(folder); ok {
				r.Inside = &in
			}
		}()
	}
	ready := ""
	if s.Ready != nil {
		ready = s.Ready.Text
	}
	if ready != "" || s.Done != "" {
		environ = unbuffered(environ)
	}
	out, texts, w, err := newOutput(ready, s.Done)
	if err != nil {
		return nil, err
	}
	in, gate, err := s.gate()
	if err != nil {
		w.Close()
		out.close()
		return nil, err
	}
	begin := time.Now()
	p, err := startProcess(s.Command, environ, s.Dir, in, w, !s.unadopted)
	w.Close()
	in.Close()
	if err != nil {
		gate.Close()
		out.close()
		r.Err = fmt.Sprintf("it cannot be started: %v", err)
		return r, nil
	}
	m := &measuring{spec: s, variant: v, run: r, process: p, output: out, gate: gate, begin: begin}
	m.deadline = &stopDeadline{ctx: ctx, kill: s.Kill}
	m.ended, m.sampler = p.ended, p.sampler()
	m.phase = Starting
	m.sample(false)
	m.phases(ctx, texts[0], texts[1])
	m.finish()
	return r, nil
}

// gate makes the input of a command that waits until it is closed; both are nil
// for other commands.
func (s *Spec) gate() (in, gate *os.File, err error) {
	if !s.Gate {
		return nil, nil, nil
	}
	return os.Pipe()
}

// unbuffered makes Python print at once, so that its output is seen in time.
func unbuffered(environ []string) []string {
	return append(environ, "PYTHONUNBUFFERED=1")
}

// measuring is a run under way.
type measuring struct {
	spec    *Spec
	variant *variant.Ready
	run     *Run
	process *process
	ended   <-chan struct{} // closed when it has ended, or seems to: see hasEnded
	gone    bool            // it has ended
	output  *output
	gate    *os.File // closed to let it go on; may be nil
	begin   time.Time
	sampler *proc.Sampler
	phase   Phase
	readyAt time.Duration

	deadline *stopDeadline // for what has to end

	last   proc.Sample // the last one
	verify verifier
}

// sample measures the tree once.
func (m *measuring) sample(detailed bool) {
	if m.sampler == nil {
		return
	}
	take := m.sampler.Sample
	if detailed {
		take = m.sampler.SampleDetailed
	}
	s, err := take()
	if err != nil || s.RSSBytes == 0 {
		return // it has ended, or its memory is gone already
	}
	m.last = s
	point := Point{At: s.Time.Sub(m.begin), Phase: m.phase, Left: s.Left, RSSBytes: s.RSSBytes}
	m.run.processes = max(m.run.processes, s.Processes)
	if s.Detail != nil {
		point.PSSBytes, point.LazyFreeBytes = s.Detail.PSSBytes, s.Detail.LazyFreeBytes
		m.run.Switches = max(m.run.Switches, s.Detail.VoluntarySwitches+s.Detail.InvoluntarySwitches)
	}
	m.run.Points = append(m.run.Points, point)
}

// fail keeps the first thing that went wrong.
func (m *measuring) fail(format string, args ...any) {
	if m.run.Err == "" {
		m.run.Err = fmt.Sprintf(format, args...)
	}
}

// finish stops what still runs and adds up.
func (m *measuring) finish() {
	m.gate.Close()
	byItself := false
	select {
	case <-m.ended:
		byItself = m.hasEnded()
	default:
	}
	wall := time.Since(m.begin)
	own := ownMaxRSS()
	var left []Process
	_, m.run.Killed, left = m.process.finish(m.deadline, m.spec.Grace)
	m.run.Left = append(m.run.Left, left...)
	m.output.close()
	if byItself {
		m.run.Exit = m.process.exit()
		if m.spec.Service() {
			m.run.Exit = m.process.tree.failed(m.run.Exit)
		}
		m.run.Ended = wall
		m.run.Wall = wall - m.readyAt
		m.crash()
	}
	m.count(own)
	m.verdict()
	if m.run.unseen() {
		m.fail("it ended after %v%s, before it could be measured%s", wall.Round(time.Millisecond), m.run.failure(" with "), m.run.said())
	}
	if m.sampler != nil {
		if _, err := m.sampler.Sample(); err == nil && m.process.tree == nil {
			m.run.Left = append(m.run.Left, untouched(m.sampler.PIDs())...)
		}
		m.sampler.Close()
	}
}

// crash describes the end of a command that was not to end, or that a signal ended.
func (m *measuring) crash() {
	e := m.run.Exit
	if e == nil {
		return
	}
	if m.run.Err != "" || m.run.failure("") != "" {
		m.run.LastLine = m.output.lastLine()
	}
	switch {
	case m.run.Err != "":
		m.run.Err += " with " + e.String()
	case e.Signal != "":
		m.run.Err = "it ended with " + e.String()
	}
	if m.run.Err != "" {
		m.run.Err += m.run.said()
	}
}

// failure says how the command failed, after a word; empty if it did not.
func (r *Run) failure(with string) string {
	if r.Exit == nil || r.Exit.Signal == "" && r.Exit.Code == 0 {
		return ""
	}
	return with + r.Exit.String()
}

// said returns the last line of a command that failed.
func (r *Run) said() string {
	return after(": ", r.LastLine)
}

// after puts a lead before a text, if there is one.
func after(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}

// count takes the totals: those of the kernel, which has seen all, or of the
// last sample, which has seen processes that nobody waited for.
func (m *measuring) count(own uint64) {
	r := m.run
	r.CPU = m.last.CPU
	r.Faults = m.last.MinorFaults + m.last.MajorFaults
	for _, p := range r.Points {
		r.Peak = max(r.Peak, p.RSSBytes)
	}
	u := m.process.usage()
	r.CPU = max(r.CPU, u.cpu)
	r.Faults = max(r.Faults, u.faults)
	r.Switches = max(r.Switches, u.switches)
	// Samples miss short peaks. The kernel's mark is that of one process.
	if u.maxRSS > own {
		r.Peak = max(r.Peak, u.maxRSS)
	}
}

// exit is how the first process ended, or the daemon that went on for it; nil if
// it was not collected.
func (p *process) exit() *Exit {
	if p.tree != nil && p.tree.daemon != 0 {
		return p.tree.daemonExit
	}
	state := p.cmd.ProcessState
	if state == nil {
		return nil
	}
	return exitOf(state)
}

func (e *Exit) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// untouched names processes that nobody has signalled.
func untouched(pids []int) []Process {
	var all []Process
	for _, pid := range pids {
		if s, err := proc.ReadStat(pid); err == nil {
			all = append(all, Process{PID: pid, Name: command(s)})
		}
	}
	return all
}

// exitOf reads how a process ended.
func exitOf(state *os.ProcessState) *Exit {
	if s, ok := state.Sys().(interface{ Signaled() bool }); ok && s.Signaled() {
		return &Exit{Code: -1, Signal: signalName(state)}
	}
	return &Exit{Code: state.ExitCode()}
}
