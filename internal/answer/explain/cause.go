package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// The causes. A leak, a spike and a lack of capacity are found by continuing the
// run; the others follow from the trigger.
const (
	Stranded      = "stranded"       // in pools, on other streams, or in frees that wait
	SharedDevice  = "shared_device"  // others hold it
	AbsurdRequest = "absurd_request" // a size that nothing before explains: a bug
)

// Prognosis is how the run would have gone on if the request had been served.
type Prognosis struct {
	// Need is what the step that failed needs at least, however blocks are placed.
	Need uint64 `json:"need_bytes"`
	// Ordinary is the most that an earlier step needed, the first excluded; nil if
	// there is no other.
	Ordinary *uint64 `json:"ordinary_bytes"`
	// Kept is what each further step leaves behind.
	Kept uint64 `json:"kept_bytes_per_step"`
	// Packed is how far the run gets without any waste.
	Packed prognosis.Carries `json:"packed"`
}

// judge decides the cause and gathers what fixes are computed from.
type judge struct {
	*explainer
	analysis *findings.Analysis // of the steps, or of the rounds that follow them
	leaks    []findings.Leak
	forecast *prognosis.Prognosis
	there    available // what the failed request could have had
	known    bool
	blocks   *timeline.Lifetimes
	guessed  bool // the steps are not to be trusted
	inTail   bool // they follow the steps
}

// newJudge continues the run from the failed request on; nil if it cannot be.
func (e *explainer) newJudge(w *findingsWork) *judge {
	f := e.failed
	if f == nil || !f.reproduced || f.program != e.program {
		return nil
	}
	j := &judge{explainer: e, analysis: w.analysis, leaks: w.found.Leaks}
	j.blocks, _ = e.Run.Lifetimes(e.ctx)
	r := prognosis.Request{Call: f.call, Cut: e.program.Len(), Event: e.event, Stack: trace.NoStack, First: j.analysis.FirstForward()}
	if e.event < e.trace.Events.Len() {
		r.Stack = known(e.trace.Events.Stack.At(e.event))
		for i := e.program.Len() - 1; i >= 0; i-- {
			if c := e.program.Call(i); c.Kind == replay.CallTry && c.Event == e.event {
				r.Cut = i
				break
			}
		}
	}
	r.InModule = j.inModule(r.Stack) && !j.inOptimizer(r.Stack)
	j.forecast = prognosis.New(e.program, j.analysis.Steps, r)
	if j.beforeBackward() || !j.forecast.Matched && j.analysis.Steps.Confidence == findings.Guess || j.layersOnly() {
		j.guessed, j.leaks = true, nil // these are no steps
		j.forecast = prognosis.New(e.program, &findings.Steps{}, r)
	}
	if !j.forecast.Matched && j.forecast.Series == nil {
		j.lookInTail(r)
	}
	for i := range j.leaks {
		j.forecast.Growth += j.leaks[i].BytesPerStep
	}
	j.there, j.known = f.availableUnder(e.limits.high)
	return j
}

// beforeBackward reports whether what repeats comes before the first backward
// pass, in which or after which the request failed: then no step is over.
func (j *judge) beforeBackward() bool {
	steps := j.analysis.Steps
	if steps.Source != findings.FromPeriod || j.event >= j.trace.Events.Len() {
		return false
	}
	backward := j.trace.Events.Stack.At(j.event) <= trace.EmptyStack
	for i := steps.List[0].Begin; i < j.event; i++ {
		if j.trace.Events.Action.At(i) == alloc.ActionAlloc && j.trace.Events.Stack.At(i) <= trace.EmptyStack {
			if i < j.lastEnd() {
				return false
			}
			backward = true
		}
	}
	return backward
}

// layersOnly reports whether what repeats are layers: rounds of a program also
// allocate outside of modules.
func (j *judge) layersOnly() bool {
	steps := j.analysis.Steps
	if steps.Source != findings.FromPeriod {
		return false
	}
	for i := steps.List[0].Begin; i < min(j.event, j.trace.Events.Len()); i++ {
		if j.trace.Events.Action.At(i) == alloc.ActionAlloc && !j.inModule(known(j.trace.Events.Stack.At(i))) {
			return false
		}
	}
	return true
}

// lookInTail looks for rounds in what follows the steps: an evaluation, a server
// after a warm-up.
func (j *judge) lookInTail(r prognosis.Request) {
	steps, from := j.analysis.Steps, 0
	if n := steps.Complete(); n > 0 {
		from = steps.List[n-1].End
	}
	if from == 0 || from >= r.Event {
		return
	}
	tail := j.analysis.From(from)
	if len(tail.Steps.List) < 2 {
		return
	}
	if x := prognosis.New(j.program, tail.Steps, r); x.Matched {
		j.analysis, j.forecast, j.inTail = tail, x, true
		if leaks := tail.Leaks(); len(leaks) > 0 {
			j.leaks = append(j.leaks, leaks...)
			for _, l := range leaks {
				j.leak(l, tail.Steps)
			}
		}
	}
}

// decide gives the cause.
func (j *judge) decide() {
	r, x := j.report, j.forecast
	need := j.need()
	r.Prognosis = &Prognosis{Need: need, Kept: x.KeptPerStep, Packed: x.Packed(j.there.bytes)}
	if x.Ordinary > 0 {
		r.Prognosis.Ordinary = &x.Ordinary
	}
	switch {
	case !j.known:
		r.Cause = causeOf(r.Trigger)
	case j.leaksKill():
		j.setLeak()
	case r.Trigger == External:
		r.Cause = SharedDevice
	case j.absurd():
		r.Cause = AbsurdRequest
		r.CauseText = fmt.Sprintf("One request for %s is more than the %s there is in all, and nothing before explains its size", units.Size(j.failed.call.Size), units.Size(j.there.bytes))
	case x.Need > j.there.bytes:
		j.setTooMuch(need)
	case x.Least() > j.there.bytes:
		r.Cause = Capacity
		r.CauseText = fmt.Sprintf("A step needs at least %s, %s more than there is, however blocks are placed", units.Size(x.Least()), units.Size(x.Least()-j.there.bytes))
	case r.Trigger == Fragmentation && !x.Matched && j.hasSteps() && j.onlyRises():
		r.Cause, r.CauseConfidence = Spike, Open
		r.CauseText = fmt.Sprintf("This part of the job is new, frees little of what it allocates and has %s of %s already; what it still needs is not known",
			units.Size(x.Need), units.Size(j.there.bytes))
	case r.Trigger == Fragmentation && !x.Matched && !j.hasSteps() && j.newPeak():
		// Memory only rose so far, and the first step is not over.
		r.Cause, r.CauseConfidence = Capacity, Open
		r.CauseText = fmt.Sprintf("The first step is not over and has %s of %s already; what it still needs is not known", units.Size(x.Need), units.Size(j.there.bytes))
	default:
		r.Cause = causeOf(r.Trigger)
	}
	if r.Trigger == Fragmentation && r.Cause == Fragmentation {
		f := j.failed
		r.CauseText = fmt.Sprintf("%s would be enough for the %s that the step needs, but no free piece holds the request for %s: the largest is %s",
			units.Size(j.there.bytes), units.Size(need), units.Size(f.call.Size), units.Size(f.free.largestUsable))
	}
	if r.CauseText == "" && r.Trigger != Capacity && j.why != "" {
		r.CauseText = strings.ToUpper(j.why[:1]) + j.why[1:]
	}
	if r.Cause == Fragmentation && !x.Matched && j.hasSteps() {
		r.CauseConfidence = Open // what this part of the job still needs is not known
	}
	if r.CauseConfidence == "" {
		r.CauseConfidence = r.Confidence
		if r.Cause != causeOf(r.Trigger) && r.CauseConfidence == Certain {
			r.CauseConfidence = Likely // it rests on how the step would have gone on
		}
	}
	j.where()
}

// where names the line of the user's code that the cause shows at. The backward
// pass runs on a thread without Python frames: the last line before it stands for
// it.
func (j *judge) where() {
	r := j.report
	if r.Line != nil || j.event >= j.trace.Events.Len() {
		if r.Line != nil {
			r.Where = r.Line.String()
		}
		return
	}
	stack := j.trace.Events.Stack.At(j.event)
	if r.Line = j.userLine(stack); r.Line != nil {
		r.Where = r.Line.String()
		return
	}
	if stack > trace.EmptyStack {
		return // only frames of libraries
	}
	for i := j.event - 1; i >= 0; i-- {
		if j.trace.Events.Action.At(i) != alloc.ActionAlloc {
			continue
		}
		if r.Line = j.userLine(j.trace.Events.Stack.At(i)); r.Line == nil {
			continue
		}
		r.Where = "the backward pass"
		if at := j.analysis.Steps.Of(j.event); at >= 0 && !j.guessed {
			r.Where += fmt.Sprintf(" of step %d", j.analysis.Steps.List[at].Number)
		}
		r.Where += ", after " + r.Line.String()
		return
	}
}

// triggered is the cause that a trigger stands for if nothing else shows; the
// others are causes themselves.
var triggered = map[string]string{
	External: SharedDevice, Pools: Stranded, Pending: Stranded, Streams: Stranded, Setting: Fragmentation, NearlyFull: Capacity, Unknown: Open,
}

func causeOf(trigger string) string { return cmp.Or(triggered[trigger], trigger) }

// hasSteps reports whether a step came to its end before the failure.
func (j *judge) hasSteps() bool {
	if j.guessed || j.analysis.Steps.Confidence == findings.Guess {
		return false
	}
	for _, s := range j.analysis.Steps.List {
		if s.Complete && s.End <= j.event {
			return true
		}
	}
	return false
}

// onlyRises reports whether most of what was allocated since the last step that
// came to its end is still there.
func (j *judge) onlyRises() bool {
	live, all := j.forecast.Rose(j.lastEnd())
	return 2*live > all
}

// newPeak reports whether more than ever would be allocated with the request.
func (j *judge) newPeak() bool {
	return j.failed.live+j.failed.rounded > j.analysis.LiveBefore(j.analysis.PeakEvent()+1)
}

// lastEnd returns where the last step ends that came to its end before the
// failure; 0 if there is none.
func (j *judge) lastEnd() (end int) {
	for _, s := range j.analysis.Steps.List {
		if s.Complete && s.End <= j.event {
			end = s.End
		}
	}
	return end
}

// need returns what the step that failed needs. Live blocks are a little larger
// than what was asked for.
func (j *judge) need() uint64 {
	return max(j.forecast.Need, j.failed.live+j.failed.rounded)
}

// leaked returns what leaks hold at the failure, and what they take at most: while
// a buffer is replaced by a larger one, both are there.
func (j *judge) leaked() (held, most uint64) {
	for i := range j.leaks {
		held, most = held+j.leaks[i].Bytes, most+j.leaks[i].Bytes
		if j.leaks[i].Replaced {
			most += j.leaks[i].Bytes
		}
	}
	return held, most
}

// leaksKill reports whether the job dies of what its steps leave behind: it would
// fit without, and even without waste it would end before it made ten times the
// steps it has made.
func (j *judge) leaksKill() bool {
	_, leaked := j.leaked()
	need := j.forecast.Need
	if leaked == 0 || need-min(need, leaked) > j.there.bytes {
		return false
	}
	times := uint64(10)
	if causeOf(j.report.Trigger) == Stranded {
		times = 1 // what kept the request from free memory explains the failure better
	}
	return need+times*leaked > j.there.bytes
}

func (j *judge) setLeak() {
	r, l := j.report, &j.leaks[0]
	r.Cause = Leak
	r.Line = j.lineOf(l.Stack)
	held, _ := j.leaked()
	var perStep uint64
	for i := range j.leaks {
		perStep += j.leaks[i].BytesPerStep
	}
	r.CauseText = fmt.Sprintf("Every step leaves %s behind, %s by now: the job dies sooner or later, whatever the allocator does",
		units.Size(perStep), units.Size(held))
	if l.Confidence != findings.Certain {
		r.CauseConfidence = Likely
	}
}

// leaksWithoutFailure puts the leak of a run that did not fail first: it will.
func (e *explainer) leaksWithoutFailure(w *findingsWork) {
	if e.report.Cause != None || len(w.found.Leaks) == 0 {
		return
	}
	l := &w.found.Leaks[0]
	e.report.Fixes = append(e.report.Fixes, Fix{Kind: FixCPU, Code: keepOnHost, Detail: "keep it on the host, without its graph, or not at all"})
	e.report.CauseText = fmt.Sprintf("Nothing failed yet, but every step leaves %s behind, %s by the end", units.Size(l.BytesPerStep), units.Size(l.Bytes))
	if l.Stack > trace.EmptyStack {
		line := w.analysis.Line(l.Stack)
		e.report.Line, e.report.Where = &line, line.String()
	}
}

// absurd reports whether the request alone is more than there is, and the steps
// before do not explain it.
func (j *judge) absurd() bool {
	x, f := j.forecast, j.failed
	// A batch that is longer in two directions makes a request larger by the square.
	explained := x.Matched && x.Grown() <= max(x.Scale, 1)*max(x.Scale, 1)
	return !explained && f.rounded > j.there.bytes
}

// setTooMuch says that the step needs more than there is.
func (j *judge) setTooMuch(need uint64) {
	r, x := j.report, j.forecast
	more := units.Size(need - j.there.bytes)
	what := "step"
	if j.analysis.Steps.Source == findings.FromPeriod {
		what = "round"
	}
	if x.Ordinary > 0 && x.Ordinary <= j.there.bytes || !x.Matched && j.hasSteps() {
		r.Cause = Spike
		ordinary := "what the steps before needed fits"
		if x.Ordinary > 0 {
			ordinary = fmt.Sprintf("an ordinary %s needs %s", what, units.Size(x.Ordinary))
		}
		r.CauseText = fmt.Sprintf("This %s needs %s, %s more than there is; %s", what, units.Size(need), more, ordinary)
		return
	}
	r.Cause = Capacity
	switch {
	case x.Series != nil && x.Series.ToCome > 0:
		r.CauseText = fmt.Sprintf("%s of the %s that this line allocates, a tensor for each one before, was still to come: %s needed, %s more than there is",
			units.Size(x.Series.ToCome+j.failed.rounded), units.Size(x.Series.Made+x.Series.ToCome+j.failed.rounded), units.Size(need), more)
	case x.Layers != nil:
		r.CauseText = fmt.Sprintf("%d of %d layers have run forward; all of them need about %s, %s more than there is", x.Layers.Done, x.Layers.All, units.Size(need), more)
	default:
		r.CauseText = fmt.Sprintf("The job needs %s, %s more than there is, however blocks are placed", units.Size(need), more)
	}
}

// lineOf returns the user's own line that led to a stack of the analysis.
func (j *judge) lineOf(stack trace.StackID) *timeline.Frame {
	if stack <= trace.EmptyStack {
		return nil
	}
	line := j.analysis.Line(stack)
	return &line
}

// userLine returns the innermost line of the user's own code.
func (e *explainer) userLine(stack trace.StackID) *timeline.Frame {
	for _, f := range timeline.Frames(e.trace, stack) {
		if f.User() {
			return &f
		}
	}
	return nil
}
