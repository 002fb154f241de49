package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/policy"
	"github.com/ashlar-mem/ashlar/internal/policy/placement"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/spelling"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// The policies that are no strategy of package policy.
const (
	Caching         = "caching"
	Expandable      = "expandable"
	StaticPlan      = "static-plan"
	Arena           = "arena"
	LowerBound      = "lower-bound"
	Managed         = "managed"
	ManagedPrefetch = "managed:prefetch"
)

// Names are all policies, in the order of the answer.
var Names = slices.Concat([]string{Caching, Expandable}, policy.Names, []string{StaticPlan, Arena, LowerBound, Managed, ManagedPrefetch})

// Question is what is asked about a recorded run or a placement problem.
type Question struct {
	Policies []string         // nil is all
	Settings []whatif.Setting // of PyTorch's allocator, beside the policies
	Limit    whatif.Limit
	Memory   whatif.Memory
	SkipOOM  bool
	Points   int           // length of the curves; 0 makes none
	Budget   time.Duration // of the static plan's search; 0 is DefaultBudget
	Accesses []Access      // what managed memory is used for; nil if that is not known
	Costs    *Costs        // of moving managed memory; nil is the H200's
	// NoLimits leaves the smallest limits out.
	NoLimits bool

	Workers  int                   // 0: as many as there are cores
	Progress func(done, total int) // is called with the number of policies done, never concurrently
}

// DefaultBudget is how long the search for a static plan may take.
const DefaultBudget = 10 * time.Second

// UnknownError says that there is no policy of that name.
type UnknownError struct{ Name, Why string }

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("unknown policy %q%s", e.Name, spelling.DidYouMean(e.Name, Names))
	if e.Why != "" {
		text = e.Why
	}
	return text + "; there are " + strings.Join(Names, ", ")
}

// CheckNames returns an *[UnknownError] if a name is not of a policy.
func CheckNames(names []string) error {
	for _, n := range names {
		if slices.Contains(Names, n) {
			continue
		}
		if _, err := policy.Parse(n); err != nil {
			e := &UnknownError{Name: n}
			if strings.HasPrefix(n, "async") {
				e.Why = err.Error()
			}
			return e
		}
	}
	return nil
}

// asked is a question about a course.
type asked struct {
	*Question
	*course
	run     *run.Checked // nil for a placement problem
	noSteps string       // why there are no steps, if there are none
	lower   uint64
	lowerAt int // op
	cap     uint64
	// traffic is that of managed memory, which prefetching does not change.
	traffic func() (traffic, error)
}

// Ask answers a question about a run. The error is an *[UnknownError] or a
// *[whatif.SettingError], or says why nothing can be replayed. When the context
// ends, what is known is returned.
func Ask(ctx context.Context, r *run.Checked, q Question) (*Answer, error) {
	if err := r.Program.Runnable(q.conditions(settings.Default())); err != nil {
		return nil, err
	}
	steps, err := r.Steps(ctx)
	if err != nil {
		return nil, err
	}
	a := &asked{Question: &q, course: newCourse(r.Program, steps.Ranges()), run: r}
	if len(a.steps) == 0 {
		a.noSteps = "the recording shows no steps"
	}
	lower, call := r.Program.PeakLive()
	a.lower, a.lowerAt = lower, slices.Index(a.calls, int32(call))
	check := whatif.NewSelfCheck(r.Program)
	out := &Answer{SelfCheck: &check, Notes: whatif.RestsOn(r.Program)}
	if r.Program.Initial() > 0 {
		out.Notes = append(out.Notes, "what was allocated before the first event is allocated first, in the order of its addresses; PyTorch's own allocator begins with its recorded state")
	}
	return a.answer(ctx, out)
}

// AskProblem answers a question about a placement problem.
func AskProblem(ctx context.Context, p *placement.Problem, q Question) (*Answer, error) {
	a := &asked{Question: &q, course: problemCourse(p), lower: placement.MaxLoad(p.Buffers), lowerAt: -1}
	a.eachLive(func(op int, live, _ uint64) {
		if live == a.lower && a.lowerAt < 0 {
			a.lowerAt = op
		}
	})
	a.noSteps = "a placement problem has no steps"
	return a.answer(ctx, &Answer{Notes: []string{}})
}

// answer runs all policies.
func (a *asked) answer(ctx context.Context, out *Answer) (*Answer, error) {
	names := a.Policies
	if names == nil {
		names = Names
	}
	if err := CheckNames(names); err != nil {
		return nil, err
	}
	if limit, memory := a.Limit.Value(), a.Memory.Value(); limit > 0 && (memory == 0 || limit < memory) {
		a.cap = limit
	} else {
		a.cap = memory
	}
	a.traffic = sync.OnceValues(func() (traffic, error) { return a.findTraffic(ctx) })
	tasks := make([]task, 0, len(names)+len(a.Settings))
	for _, n := range names {
		tasks = append(tasks, a.task(n))
	}
	for _, s := range a.Settings {
		tasks = append(tasks, task{Caching + ":" + s.Conf, func(ctx context.Context) (*Result, error) { return a.engine(ctx, Caching+":"+s.Conf, s) }})
	}
	results, err := a.runAll(ctx, tasks)
	if err != nil {
		return nil, err
	}
	out.Limit, out.DeviceMemory, out.OnOOM, out.LowerBound = a.Limit, a.Memory, whatif.OnOOMDie, a.lower
	out.NotRun, out.Results, out.Interrupted = []string{}, []*Result{}, ctx.Err() != nil
	if a.SkipOOM {
		out.OnOOM = whatif.OnOOMSkip
	}
	for i, r := range results {
		if r == nil {
			out.NotRun = append(out.NotRun, tasks[i].name)
			continue
		}
		out.Results = append(out.Results, r)
	}
	return out, nil
}

// task makes one result.
type task struct {
	name string
	run  func(context.Context) (*Result, error)
}

func (a *asked) task(name string) task {
	var f func(context.Context) (*Result, error)
	switch name {
	case Caching:
		f = func(ctx context.Context) (*Result, error) {
			return a.engine(ctx, name, whatif.Setting{Parsed: settings.Default()})
		}
	case Expandable:
		s := settings.Default()
		s.ExpandableSegments = true
		f = func(ctx context.Context) (*Result, error) {
			return a.engine(ctx, name, whatif.Setting{Conf: s.String(), Parsed: s})
		}
	case StaticPlan:
		f = a.plan
	case Arena:
		f = a.arena
	case LowerBound:
		f = a.bound
	case Managed, ManagedPrefetch:
		f = func(context.Context) (*Result, error) { return a.managed(name) }
	default:
		f = func(ctx context.Context) (*Result, error) { return a.online(ctx, name) }
	}
	return task{name, f}
}

// runAll runs the tasks on all cores, the static plan first: it may take longest.
func (a *asked) runAll(ctx context.Context, tasks []task) ([]*Result, error) {
	order := make([]int, len(tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return later(tasks[i]) - later(tasks[j]) })
	results := make([]*Result, len(tasks))
	done := parallel.Counter(len(tasks), a.Progress)
	err := parallel.Each(ctx, a.Workers, len(tasks), func(n int) error {
		i := order[n]
		r, err := tasks[i].run(ctx)
		if err == nil {
			results[i] = r
		} else if ctx.Err() != nil {
			err = nil // there was no time
		}
		done()
		return err
	})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	if refused := (*whatif.SettingError)(nil); errors.As(err, &refused) {
		return nil, err
	}
	return results, nil
}

func later(t task) int {
	if t.name == StaticPlan {
		return 0
	}
	return 1
}

// time returns the time of an event.
func (a *asked) time(event int) int64 {
	if a.run == nil || event < 0 || event >= a.run.Events() {
		return trace.NoTime
	}
	return a.run.Trace.Events.Time.At(event)
}
