package run

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ashlar-mem/ashlar/hostmem/detect"
	"github.com/ashlar-mem/ashlar/hostmem/proc"
	"github.com/ashlar-mem/ashlar/hostmem/variant"
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
	PSSBytes      uint64 // 0 in most points: it is dear
	LazyFreeBytes uint64 // known where PSSBytes is
}

// Run is one run of the command under one variant.
type Run struct {
	Variant   string
	Points    []Point
	Exit      *Exit         // nil if it was ended
	Ended     time.Duration // when it ended by itself, since the start
	LastLine  string        // that it printed, if it failed
	Settled   bool          // it was left alone at the end
	Killed    bool          // it ignored SIGTERM
	Left      []Process
	Found     *detect.Result // nil if it could not be looked at
	Verified  bool
	NoEffect  bool  // a preload was without effect
	Lonely    bool  // its largest process has not got the background thread of the first
	Load      *Exit // of the load; nil if there was none, or it was ended
	Err       string
	CPU, Wall time.Duration
	Peak      uint64
	Faults    uint64
	Switches  uint64 // of contexts
	processes int    // the most at a time
}

// Exit is how a command ended by itself.
type Exit struct {
	Code   int
	Signal string // empty: none
}

// Process names a process.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// one makes one run. Whatever goes wrong is in the run; the error is that of
// the context.
func (s *Spec) one(ctx context.Context, v *variant.Ready) (*Run, error) {
	r := &Run{Variant: v.Name}
	if s.Ready != nil && s.Ready.URL != "" && s.Ready.answers(ctx) {
		r.Err = s.Ready.URL + " answers before the command was started: something else is running there"
		return r, nil
	}
	environ, _ := v.Environ(s.Environ)
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
	p, err := startProcess(s.Command, environ, s.Dir, in, w)
	w.Close()
	in.Close()
	if err != nil {
		gate.Close()
		out.close()
		r.Err = fmt.Sprintf("it cannot be started: %v", err)
		return r, nil
	}
	m := &measuring{spec: s, variant: v, run: r, process: p, output: out, gate: gate, begin: begin}
	if m.sampler, err = proc.NewSampler(p.group); err != nil {
		m.sampler = nil // it has ended already
	}
	m.phase = Starting
	m.sample(false)
	m.phases(ctx, texts[0], texts[1])
	m.finish(ctx)
	return r, context.Cause(ctx)
}

// gate makes the input of a command that waits for its end; both are nil for
// one that does not.
func (s *Spec) gate() (in, gate *os.File, err error) {
	if !s.Gate {
		return nil, nil, nil
	}
	return os.Pipe()
}

// unbuffered has Python print at once, so that its texts are seen when it
// prints them.
func unbuffered(environ []string) []string {
	return append(environ, "PYTHONUNBUFFERED=1")
}

// measuring is a run under way.
type measuring struct {
	spec    *Spec
	variant *variant.Ready
	run     *Run
	process *process
	output  *output
	gate    *os.File // closed to let it go on; may be nil
	begin   time.Time
	sampler *proc.Sampler
	phase   Phase
	readyAt time.Duration

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

// finish ends what still runs and adds up.
func (m *measuring) finish(ctx context.Context) {
	m.gate.Close()
	byItself := false
	select {
	case <-m.process.ended:
		byItself = true
	default:
	}
	wall := time.Since(m.begin)
	grace := m.spec.Grace
	if ctx.Err() != nil {
		grace = min(grace, interruptedGrace)
	}
	own := ownMaxRSS()
	_, m.run.Killed = m.process.finish(grace)
	m.output.close()
	if byItself {
		m.run.Exit = m.process.exit()
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
		if _, err := m.sampler.Sample(); err == nil {
			m.run.Left = names(m.sampler.PIDs())
		}
		m.sampler.Close()
	}
}

// crash words the end of a command that was not to end, or that a signal ended.
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

// failure is how the command ended if that is not with success, after a word.
func (r *Run) failure(with string) string {
	if r.Exit == nil || r.Exit.Signal == "" && r.Exit.Code == 0 {
		return ""
	}
	return with + r.Exit.String()
}

// said is what the command said last if it failed.
func (r *Run) said() string {
	if r.LastLine == "" {
		return ""
	}
	return ": " + r.LastLine
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
	if u == nil {
		return
	}
	r.CPU = max(r.CPU, time.Duration(u.Utime.Nano()+u.Stime.Nano()))
	r.Faults = max(r.Faults, uint64(u.Minflt+u.Majflt))
	r.Switches = max(r.Switches, uint64(u.Nvcsw+u.Nivcsw))
	// Samples miss short peaks. The kernel's mark is that of one process.
	if most := maxRSS(u); most > own {
		r.Peak = max(r.Peak, most)
	}
}

// exit is how the first process ended; nil if it was not collected.
func (p *process) exit() *Exit {
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

func names(pids []int) []Process {
	var all []Process
	for _, pid := range pids {
		if s, err := proc.ReadStat(pid); err == nil {
			all = append(all, Process{pid, s.Name})
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
