package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// A job that needs more than there is, and that nothing else carries to its end, runs with overflow of libashlar.so:
// more slowly. How much so is asked of the continued run, of which whatif says it for a complete one.

// endless is how many steps have to find room in the least host memory that is proposed: a job that leaks dies of it later.
const endless = 10_000

// leastHost is the least host memory that is proposed.
const leastHost = 4 << 30

// slowest is how many times longer a step may take with overflow: nobody waits for more.
const slowest = 10

// overflow says what host memory would do for a job that nothing else carries.
func (j *judge) overflow() error {
	r := j.report
	carries := func(f Fix) bool {
		return f.Kind != FixMemory && f.Carries != nil && f.Carries.Kind == prognosis.Steady
	}
	switch {
	case r.Cause != Capacity && r.Cause != Spike || r.CauseConfidence == Open || !j.known || !j.endsThere(),
		slices.ContainsFunc(r.Fixes, carries) || slices.ContainsFunc(r.AfterUpgrade, carries),
		endless*j.forecast.Grows() > leastHost,
		j.trace.Platform != "" || !r.SelfCheck.Complete || !j.Full && j.program.Len() > many:
		return nil
	}
	jobs, restsOn := j.overflowJobs()
	if len(jobs) == 0 || j.usesPools() {
		return nil
	}
	o, err := j.askOverflow(jobs)
	if err != nil || o == nil || j.tooSlow(o) {
		return err
	}
	yes, until := true, j.trace.Events.Len()
	fix := Fix{
		Kind: FixOverflow, Export: j.overflowLine(o.HostBytes), Requires: "libashlar.so on Linux", PassesFailure: &yes, UntilEvent: &until,
		Carries: &prognosis.Carries{Kind: prognosis.Steady, RestsOn: restsOn}, Overflow: o, Detail: j.overflowText(o, restsOn),
	}
	// A change that makes the job smaller stands before it, more memory behind it.
	at := 0
	if len(r.Fixes) > 0 && r.Fixes[0].Kind != FixMemory {
		at = 1
	}
	r.Fixes = slices.Insert(r.Fixes, at, fix)
	return nil
}

// usesPools reports whether the run has private pools, of which another allocator than PyTorch's has only those of graphs.
func (j *judge) usesPools() bool {
	for i := range j.program.Len() {
		if j.program.Call(i).Pool != (alloc.PoolID{}) {
			return true
		}
	}
	return false
}

// overflowJobs returns the ways in which the run may go on, and what they rest on; none if that is not known. Marks are
// the steps of an optimizer, so a job without one is another matter.
func (j *judge) overflowJobs() (jobs []*whatif.OverflowJob, restsOn string) {
	x := j.forecast
	if j.inTail || j.blocks == nil || !j.trains() {
		return nil, ""
	}
	tensors := whatif.KnownTensors(j.program, j.analysis, j.blocks)
	switch {
	case x.Matched:
		c := x.Continued()
		ask := func(from, to int, seconds float64) {
			jobs = append(jobs, overflowJob(c, tensors.Category, tensors.Site, from, to, seconds))
		}
		if j.report.Cause != Spike {
			ask(c.Recorded+2, len(c.Begins)+1, j.ordinarySeconds())
			return jobs, c.RestsOn
		}
		// Memory has to move if such steps are rare, and has found its place if one follows the other. How long one takes
		// otherwise is not known.
		ask(c.Recorded, c.Recorded+1, 0)
		if x.Scale > 1 {
			ask(c.Recorded+1, c.Recorded+2, 0)
		}
		return jobs, c.RestsOn
	case !j.hasSteps():
		state := j.firstState()
		for _, passing := range []bool{true, false} { // as the default is, and as fused ones do
			if c := x.ContinuedFirst(state, passing); c != nil {
				category := func(tensor int) findings.Category { return j.firstCategory(tensor, state) }
				jobs, restsOn = append(jobs, overflowJob(c, category, tensors.Site, c.Recorded+2, len(c.Begins)+1, 0)), c.RestsOn
			}
		}
	}
	return jobs, restsOn
}

// firstState returns the stacks that make the state of an optimizer in whose first step the request failed. Each makes, or
// would have made, as much as there are gradients. It is empty if one does not, and if another one of the optimizer is
// half-way: then it is not known what is still to come.
func (j *judge) firstState() (state []trace.StackID) {
	x := j.forecast
	request := j.requestStack()
	if !j.inOptimizer(request) {
		return nil
	}
	var stacks []trace.StackID
	gradients := uint64(0)
	sizes := map[uint64]bool{}
	for i := range x.Allocations() {
		switch stack := j.stackOf(i); {
		case !x.Live(i):
		case i < x.Failing():
			sizes[x.Size(i)] = true
		case stack <= trace.EmptyStack:
			if sizes[x.Size(i)] {
				gradients += x.Size(i)
			}
		case !slices.Contains(stacks, stack) && j.inOptimizer(stack):
			stacks = append(stacks, stack)
		}
	}
	if !slices.Contains(stacks, request) {
		stacks = append(stacks, request)
	}
	const share = 100 // less than that part of it is something else: counts of steps
	for _, stack := range stacks {
		switch all := x.Total(stack); {
		case all < gradients/share:
		case all+gradients/share >= gradients && all <= gradients+gradients/share:
			state = append(state, stack)
		case stack != request:
			return nil
		}
	}
	return state
}

// requestStack returns the call stack of the request that failed.
func (j *judge) requestStack() trace.StackID {
	if j.event >= j.trace.Events.Len() {
		return trace.NoStack
	}
	return known(j.trace.Events.Stack.At(j.event))
}

// overflowJob asks about some steps of a continued run; in the list of all of them the set-up comes first.
func overflowJob(c *prognosis.Continued, category func(int) findings.Category, site func(int) string, from, to int, seconds float64) *whatif.OverflowJob {
	return &whatif.OverflowJob{
		Program: c.Program, Begins: c.Begins, StepSeconds: seconds,
		Fetches: c.Begins, // a continued run does not say where the optimizer begins, which ends the step
		Category: func(tensor int) findings.Category {
			if tensor = c.Like(tensor); tensor < 0 {
				return findings.Temporaries
			}
			return category(tensor)
		},
		Site: func(tensor int) string {
			if tensor = c.Like(tensor); tensor < 0 {
				return ""
			}
			return site(tensor)
		},
		Counted: func(steps []replay.OverflowStep) []replay.OverflowStep {
			return steps[min(from, len(steps)):min(to, len(steps))]
		},
	}
}

// ordinarySeconds returns what a step takes that is not the first; 0 if the recording does not tell.
func (j *judge) ordinarySeconds() float64 {
	list := j.analysis.Steps.List
	return whatif.StepSeconds(j.trace, list[min(1, len(list)):])
}

// trains reports whether an optimizer allocates.
func (j *judge) trains() bool {
	seen := map[trace.StackID]bool{}
	for i := range j.forecast.Allocations() {
		stack := j.stackOf(i)
		if !seen[stack] && j.inOptimizer(stack) {
			return true
		}
		seen[stack] = true
	}
	return false
}

// stackOf returns the call stack of an allocation.
func (j *judge) stackOf(position int) trace.StackID {
	return known(j.trace.Events.Stack.At(j.forecast.Event(position)))
}

// firstCategory returns what a tensor is for in a first step that failed in the optimizer, when its passes are over.
func (j *judge) firstCategory(tensor int, state []trace.StackID) findings.Category {
	x := j.forecast
	i := x.Position(tensor)
	if i < 0 {
		return findings.Unknown
	}
	stack := j.stackOf(i)
	switch before, live := i < x.Failing(), x.Live(i); {
	case before && live:
		return findings.Parameters
	case before:
		return findings.Temporaries
	case slices.Contains(state, stack) && live:
		return findings.OptimizerState
	case live && stack <= trace.EmptyStack:
		return findings.Gradients
	case stack <= trace.EmptyStack:
		return findings.Temporaries
	}
	return findings.Activations
}

// askOverflow asks at both ends of the limit's range; nil if the run fails all the same, or without host memory does not.
func (j *judge) askOverflow(jobs []*whatif.OverflowJob) (*whatif.Overflow, error) {
	limits := []uint64{j.limits.low}
	if j.limits.low < j.limits.high {
		limits = append(limits, j.limits.high)
	}
	least := j.there.bytes
	if j.there.cap {
		least = j.limits.low
	}
	missing := j.need() - min(j.need(), least)
	// Nothing is taken before it is needed, and a later step may be larger.
	host := uint64(leastHost)
	for host < 4*missing {
		host *= 2
	}
	const tries = 3
	for range tries {
		o, err := j.askAll(jobs, limits, host)
		if err != nil || o == nil {
			return nil, err
		}
		if o.Runs {
			return o, nil
		}
		host *= 2
	}
	return nil, nil
}

// askAll joins the answers for several jobs under several limits; nil if one needs no host memory.
func (j *judge) askAll(jobs []*whatif.OverflowJob, limits []uint64, host uint64) (all *whatif.Overflow, err error) {
	for _, job := range jobs {
		for _, limit := range limits {
			o, err := job.Ask(j.ctx, j.failed.whole(j.conditions(limit)), host)
			if err != nil || o.PeakHost == 0 {
				return nil, j.ctx.Err() // what a device with host memory refuses, it is no help for
			}
			if all != nil {
				o = all.Join(o)
			}
			all = o
		}
	}
	return all, nil
}

// tooSlow reports whether a step takes too long, or nobody knows. A step that is larger than others takes longer anyway,
// and so does the first.
func (j *judge) tooSlow(o *whatif.Overflow) bool {
	step := j.ordinarySeconds()
	if from, to := j.trace.Events.Time.At(j.forecast.Event(j.forecast.Failing())), j.trace.Events.Time.At(j.event); step == 0 && from != trace.NoTime && to > from {
		step = float64(to-from) / 1e6 // the step that failed, as far as it came
	}
	return step == 0 || 1+o.ExtraSeconds.High/step > slowest
}

// overflowLine returns what to type. The library reads PyTorch's variable only if there is none of its own, so the
// recorded settings go along, except those that are the library's or PyTorch's affair.
func (j *judge) overflowLine(host uint64) string {
	s, d := j.program.Settings, settings.Default()
	s.ExpandableSegments, s.Backend = d.ExpandableSegments, d.Backend // the library has them on, and overflow needs them
	s.PinnedUseBackgroundThreads, s.PinnedUseHostRegister = d.PinnedUseBackgroundThreads, d.PinnedUseHostRegister
	s.PinnedNumRegisterThreads, s.PinnedReserveSegmentSize = d.PinnedNumRegisterThreads, d.PinnedReserveSegmentSize
	conf := s.String()
	if conf != "" {
		conf += ","
	}
	return fmt.Sprintf("ASHLAR_CONF=%s python -m ashlar_mem.ashlar_torch %s", settings.Quoted(fmt.Sprintf("%soverflow:%dGiB", conf, host>>30)), scriptOf(j.trace))
}

// overflowText says in a sentence what overflow does.
func (j *judge) overflowText(o *whatif.Overflow, restsOn string) string {
	more := fmt.Sprintf("%.0f to %.0f ms longer", 1000*o.ExtraSeconds.Low, 1000*o.ExtraSeconds.High)
	cost := more + " a step"
	if s := o.Slowdown; s != nil {
		cost = fmt.Sprintf("%.2f to %.2f times slower than recorded", s.Low, s.High)
	}
	if j.report.Cause == Spike {
		cost = "steps like this one " + more
		if s := j.ordinarySeconds(); s > 0 {
			cost += fmt.Sprintf(" (an ordinary one took %.0f ms)", 1000*s)
		}
	}
	return fmt.Sprintf("with overflow this job runs, %s; up to %s would lie in the host's memory. Replayed: %s; steps no larger than those seen", cost, units.Size(o.PeakHost)+" of "+awayText(o), restsOn)
}

// awayNames are what lies in the host's memory, in words.
var awayNames = map[findings.Category]string{
	findings.OptimizerState: "the optimizer's state", findings.Parameters: "parameters", findings.Gradients: "gradients", findings.Activations: "activations",
	findings.Temporaries: "temporary tensors", findings.Workspace: "workspaces", findings.Unknown: "other tensors",
}

// awayText says what lies in the host's memory: what is a tenth of it or more.
func awayText(o *whatif.Overflow) string {
	sums, all := map[findings.Category]uint64{}, uint64(0)
	for _, h := range o.Holders {
		sums[h.Category] += h.Bytes
		all += h.Bytes
	}
	kinds := slices.DeleteFunc(findings.Categories(), func(c findings.Category) bool { return sums[c] == 0 || 10*sums[c] < all })
	slices.SortStableFunc(kinds, func(a, b findings.Category) int { return cmp.Compare(sums[b], sums[a]) })
	var said []string
	for _, c := range kinds {
		said = append(said, awayNames[c])
	}
	if len(said) > 1 {
		said = append(said[:len(said)-2], said[len(said)-2]+" and "+said[len(said)-1])
	}
	return strings.Join(said, ", ")
}
