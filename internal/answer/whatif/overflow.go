package whatif

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Overflow says what would become of a run under the limit if requests that fail got
// memory of the host: alloc/tier over the simulated device.
type Overflow struct {
	HostBytes uint64 `json:"host_bytes"` // that may be taken
	Runs      bool   `json:"runs"`
	Failed    uint64 `json:"failed_bytes"` // the request that fails all the same; 0 if none does
	// Died is that a request failed while this was recorded: what the program would have done then is not known.
	Died     bool   `json:"recorded_failure"`
	PeakHost uint64 `json:"peak_host_bytes"`
	// ExtraSeconds is how much longer a step takes, 0 where nothing overflows; nil if the run fails.
	ExtraSeconds *Range `json:"extra_seconds"`
	// StepSeconds is what a recorded step takes, with what the recording costs; nil if the
	// file does not tell.
	StepSeconds *float64 `json:"step_seconds"`
	// Steps is of how many steps all this is the mean; 0 if none were found: it is of the whole recording then.
	Steps int `json:"steps"`
	// Slowdown is how many times longer a step takes; nil if StepSeconds is.
	Slowdown *Range `json:"slowdown"`
	// Frozen are the bytes of parameters without a gradient; the ranges hold whether libashlar.so names them cold or not.
	Frozen uint64 `json:"frozen_bytes"`
	// Holders are the tensors that a step has in the host's memory, one after the other or at once, largest first.
	Holders []OverflowHolder `json:"holders"`
}

// Range is a figure that is known to lie between two others.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// OverflowHolder are the tensors of one category and call site that a step has in the host's memory.
type OverflowHolder struct {
	Category findings.Category `json:"category"`
	Site     string            `json:"site"` // empty if the file has no frames for it
	Bytes    uint64            `json:"bytes"`
}

// traffic is how often a step reads and writes memory of the host, at least and at most. A memory trace shows who
// made a tensor, when it was there and when it was moved, and so which passes of the step touch it. How often
// kernels read it in one of them it does not show: the least is once, the most what was seen on an H200, or what
// kernels do that are not fused.
type traffic struct{ least, most passes }

type passes struct{ reads, writes float64 }

var trafficOf = map[findings.Category]traffic{
	findings.Parameters:     {passes{3, 1}, passes{10, 2}}, // both passes and the optimizer; convolutions read them again and again
	findings.OptimizerState: {passes{1, 1}, passes{2, 2}},  // what did not come home before the optimizer: together 2.6 to 3 were measured
	findings.Gradients:      {passes{1, 1}, passes{3, 2}},  // the backward pass writes, the optimizer reads
	findings.Activations:    {passes{2, 1}, passes{4, 1}},  // forward writes and reads, the backward pass reads
	findings.Temporaries:    {passes{1, 1}, passes{2, 2}},
	findings.Workspace:      {passes{1, 1}, passes{3, 3}},
	findings.Unknown:        {passes{1, 1}, passes{3, 2}},
}

// movedTraffic is that of what was moved after it had been made: nothing but the backward pass comes to it.
var movedTraffic = traffic{passes{1, 0}, passes{3, 0}}

// homeTraffic is that of what was moved and came home when the step was past its peak: the backward pass may have read it once.
var homeTraffic = traffic{passes{0, 0}, passes{1, 0}}

// frozenTraffic is that of parameters that nobody trains: the passes read them, and no optimizer does.
var frozenTraffic = traffic{passes{1, 0}, passes{8, 0}}

// What a step takes longer than its moves and reads, from 32 runs on an H200 (testdata/overflow).
const (
	// slowMoves is for moves in the middle of a step at most, beside those that were measured alone.
	slowMoves = 1.3
	// Moves wait for the device, and what the cache gives back for a stream. Then the program has to give the device work again.
	longWait  = 5 * time.Millisecond
	shortWait = 200 * time.Microsecond
	// longMark is what a step took longer at most in which nothing overflowed. Of that hooks and marks are 0.4 ms; steps that wait for
	// the program, not the device, differ from process to process.
	longMark = 6 * time.Millisecond
)

func (p passes) time(bytes uint64) time.Duration {
	return time.Duration(p.reads*float64(sim.HostReadTime(bytes)) + p.writes*float64(sim.HostWriteTime(bytes)))
}

// AskOverflow replays a run with up to host bytes of the host's memory.
func AskOverflow(ctx context.Context, r *run.Checked, q Question, host uint64) (*Overflow, error) {
	job, err := overflowJob(ctx, r)
	if err != nil {
		return nil, err
	}
	o, err := job.Ask(ctx, q.conditions(recordedSetting(r.Program)), host)
	if err != nil {
		return nil, err
	}
	for i := range r.Program.Len() {
		if o.Died = r.Program.Call(i).Kind == replay.CallTry; o.Died {
			break
		}
	}
	return o, nil
}

// overflowJob is the job of a recording.
func overflowJob(ctx context.Context, r *run.Checked) (*OverflowJob, error) {
	analysis, err := r.Analysis(ctx)
	if err != nil {
		return nil, err
	}
	lives, err := r.Lifetimes(ctx)
	if err != nil {
		return nil, err
	}
	known := KnownTensors(r.Program, analysis, lives)
	job := &OverflowJob{
		Program: r.Program, Category: known.Category, Site: known.Site, Counted: settledSteps,
		StepSeconds: StepSeconds(r.Trace, analysis.Steps.List),
	}
	fused := analysis.FusedOptimizer()
	for i, s := range analysis.Steps.List {
		job.Begins = append(job.Begins, s.Begin)
		if fused {
			continue
		}
		event, ok := analysis.OptimizerAt(i)
		if !ok {
			event = s.End
		}
		job.Fetches = append(job.Fetches, event)
	}
	return job, nil
}

// OverflowJob is a job that may get host memory: its calls, and what is known of them.
type OverflowJob struct {
	Program  *replay.Program
	Begins   []int                                             // the events with which steps begin, ascending
	Fetches  []int                                             // the events with which optimizers begin that have their state brought home, ascending
	Category func(tensor int) findings.Category                // what a tensor is for
	Site     func(tensor int) string                           // the line that allocates it; empty if that is not known
	Counted  func([]replay.OverflowStep) []replay.OverflowStep // those of all steps that the answer is about
	// StepSeconds is what one of these takes without overflow; 0 if that is not known.
	StepSeconds float64
}

// Ask makes the calls with up to host bytes of the host's memory. Whether libashlar.so would name parameters without a
// gradient as cold is not in a recording: the answer then holds for both.
func (j *OverflowJob) Ask(ctx context.Context, c replay.Conditions, host uint64) (*Overflow, error) {
	none := func(int) bool { return false }
	frozen, bytes, trains := j.frozen()
	if bytes < leastFrozen {
		return j.ask(ctx, c, host, none, trains)
	}
	out, err := j.ask(ctx, c, host, frozen, trains)
	if err != nil {
		return nil, err
	}
	out.Frozen = bytes
	trained, err := j.ask(ctx, c, host, none, trains)
	if err != nil {
		return nil, err
	}
	return out.Join(trained), nil
}

// ask makes the calls with some parameters named cold. Where nothing trains nobody names any.
func (j *OverflowJob) ask(ctx context.Context, c replay.Conditions, host uint64, frozen func(tensor int) bool, trains bool) (*Overflow, error) {
	o, err := j.Program.RunOverflow(ctx, c, replay.Overflow{
		Host: host, Events: j.Begins,
		// As ashlar_torch names the optimizer's state, and what it trains.
		Cold:    func(tensor int) bool { return j.Category(tensor) == findings.OptimizerState || frozen(tensor) },
		Busy:    func(tensor int) bool { return trains && j.Category(tensor) == findings.Parameters && !frozen(tensor) },
		Fetches: j.Fetches, State: func(tensor int) bool { return j.Category(tensor) == findings.OptimizerState },
	})
	if err != nil {
		return nil, err
	}
	out := &Overflow{HostBytes: host, Runs: !o.Fails, PeakHost: o.HostPeak, Holders: []OverflowHolder{}}
	if o.Failure != nil {
		out.Failed = o.Failure.Requested
	}
	steps := j.Counted(o.Steps)
	if len(j.Begins) > 0 {
		out.Steps = len(steps)
	}
	held := map[OverflowHolder]uint64{}
	var low, high time.Duration
	for _, s := range steps {
		low += s.Moves + time.Duration(s.Waits)*shortWait
		high += time.Duration(slowMoves*float64(s.Moves)) + time.Duration(s.Waits+s.Gives)*longWait + sim.RemapTime(s.Mapped) + longMark
		for _, a := range s.Away {
			c, site := j.of(a)
			t := trafficOf[c]
			switch {
			case a.Home && a.Moved:
				t = homeTraffic
			case a.Home:
				t = traffic{}
			case a.Moved:
				t = movedTraffic
			case c == findings.Parameters && (!trains || frozen(a.Tensor)):
				t = frozenTraffic
			}
			low += t.least.time(a.Bytes)
			high += t.most.time(a.Bytes)
			held[OverflowHolder{Category: c, Site: site}] += a.Bytes
		}
	}
	n := uint64(max(len(steps), 1))
	for h, bytes := range held {
		h.Bytes = bytes / n
		out.Holders = append(out.Holders, h)
	}
	slices.SortFunc(out.Holders, func(a, b OverflowHolder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Category, b.Category), cmp.Compare(a.Site, b.Site))
	})
	if !out.Runs {
		return out, nil
	}
	if out.PeakHost == 0 {
		low, high = 0, 0
	}
	out.ExtraSeconds = &Range{low.Seconds() / float64(n), high.Seconds() / float64(n)}
	if seconds := j.StepSeconds; seconds > 0 {
		out.StepSeconds = &seconds
		out.Slowdown = &Range{1 + out.ExtraSeconds.Low/seconds, 1 + out.ExtraSeconds.High/seconds}
	}
	return out, nil
}

// of says what is in the host's memory, and which line allocates it.
func (j *OverflowJob) of(a replay.Away) (findings.Category, string) {
	if a.Tensor >= 0 {
		return j.Category(a.Tensor), j.Site(a.Tensor)
	}
	t := j.Program.Trace
	if site, ok := timeline.SiteOf(t, t.Events.Stack.At(a.Event)); ok {
		return findings.Unknown, site.String()
	}
	return findings.Unknown, ""
}

// Join returns an answer that holds in another case too: its ranges cover both, and the run passes if it does in both. The
// holders stay.
func (o *Overflow) Join(other *Overflow) *Overflow {
	out := *o
	out.PeakHost = max(o.PeakHost, other.PeakHost)
	if !o.Runs {
		return &out
	}
	if !other.Runs {
		out.Runs, out.Failed, out.ExtraSeconds, out.StepSeconds, out.Slowdown = false, other.Failed, nil, nil, nil
		return &out
	}
	out.ExtraSeconds, out.Slowdown = o.ExtraSeconds.cover(other.ExtraSeconds), o.Slowdown.cover(other.Slowdown)
	return &out
}

// cover returns the range from the lower to the higher end of two, nil if one is not known.
func (r *Range) cover(other *Range) *Range {
	if r == nil || other == nil {
		return nil
	}
	return &Range{min(r.Low, other.Low), max(r.High, other.High)}
}

// settledSteps leaves out the set-up and the first steps, in which memory finds its place,
// as far as others are left.
func settledSteps(steps []replay.OverflowStep) []replay.OverflowStep {
	return steps[min(3, len(steps)-1):]
}

// StepSeconds returns what half of the complete steps take at most; 0 if the file has no times.
func StepSeconds(t *trace.Trace, steps []findings.Step) float64 {
	var took []int64
	for i, s := range steps {
		if i+1 == len(steps) || !s.Complete {
			break
		}
		from, to := t.Events.Time.At(s.Begin), t.Events.Time.At(steps[i+1].Begin)
		if from != trace.NoTime && to > from {
			took = append(took, to-from)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return float64(took[len(took)/2]) / 1e6
}
