package plan

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Trace runs a job through the engine and returns what PyTorch's memory history
// of the run would be: every event, the segments at the end, and annotations for
// steps and phases. Frames name the op and the module; times count events. With
// a capacity the run ends at the request that fails.
func Trace(ctx context.Context, q Question) (*trace.Trace, error) {
	if err := q.prepare(); err != nil {
		return nil, err
	}
	j, _, err := q.Options.Job(q.Model)
	if err != nil {
		return nil, err
	}
	p, err := q.planJob(ctx, j, 0)
	if err != nil {
		return nil, err
	}
	return p.trace(ctx, string(j.Optimizer), nil)
}

// Stacks are the call stacks of a ledger that was made by a real program.
type Stacks struct {
	Of     func(tensor int32) int32           // the stack of a tensor's birth
	Frames func(stack int32) []timeline.Frame // innermost first
}

// Trace is what PyTorch's memory history of the run would be, as the function of
// that name has it.
func (p *Played) Trace(ctx context.Context, s Stacks) (*trace.Trace, error) {
	return p.trace(ctx, "optimizer", &s)
}

func (p *Played) trace(ctx context.Context, optimizer string, s *Stacks) (*trace.Trace, error) {
	return traceOf(ctx, p.Ledger, p.conditions(), p.Conf, optimizer, s)
}

// tick is how many microseconds apart events of a planned run are. Nothing is
// known about real times; all that counts is their order.
const tick = 10

// tracer turns the events of the engine into those of a trace.
type tracer struct {
	ledger   *ledger.Ledger
	trace    *trace.Trace
	purposes []ledger.Kind
	marks    *marks
	phases   []ledger.Phase // those to come
	phase    ledger.Phase

	// Of the running call.
	call  int
	now   int64
	stack trace.StackID
	kind  trace.StringID

	real   *Stacks // nil if the run has none
	made   map[realKey]trace.StackID
	stacks map[frameKey]trace.StackID
	kinds  []trace.StringID
	live   map[uint64]trace.StackID
}

// frameKey is what the stack of an allocation depends on.
type frameKey struct {
	op, module ledger.Name
	phase      string
	flush      bool // a call of empty_cache
}

// traceOf runs a ledger under some conditions.
func traceOf(ctx context.Context, l *ledger.Ledger, c replay.Conditions, conf, optimizer string, real *Stacks) (*trace.Trace, error) {
	program, err := Program(l, c.Settings)
	if err != nil {
		return nil, err
	}
	x := &tracer{
		ledger: l, purposes: l.Purposes(), phases: l.Phases, call: -1,
		real: real, made: map[realKey]trace.StackID{}, stacks: map[frameKey]trace.StackID{}, live: map[uint64]trace.StackID{},
		trace: &trace.Trace{
			Strings: &trace.Strings{}, Stacks: trace.NewStacks(),
			Settings: trace.Settings{Known: true, Conf: conf, Parsed: c.Settings, Fields: trace.Extra{{Name: settings.Variable, Value: conf}}},
		},
	}
	x.marks = &marks{tracer: x, optim: "Optimizer.step#" + optimizer + ".step"}
	for _, k := range ledger.Kinds() {
		x.kinds = append(x.kinds, x.trace.Strings.Add(k.String()))
	}
	c.Observe = x.observe
	o, err := program.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	x.moveTo(min(o.Calls, len(l.Events)-1)) // a failed call counts
	x.marks.closeAll()
	for i := range o.Segments {
		x.trace.Segments = append(x.trace.Segments, trace.FromEngine(&o.Segments[i], x.live))
	}
	return x.trace, nil
}

// observe appends an event of a call.
func (x *tracer) observe(call int, e alloc.Event) {
	x.moveTo(call)
	switch e.Action {
	case alloc.ActionAlloc:
		x.live[e.Addr] = x.stack
	case alloc.ActionFreeCompleted:
		delete(x.live, e.Addr)
	}
	x.trace.Events.Append(trace.Event{
		Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Time: x.now, Stack: x.stack, Meta: x.kind,
	})
}

// moveTo makes a call the running one.
func (x *tracer) moveTo(call int) {
	if call == x.call {
		return
	}
	x.call = call
	for len(x.phases) > 0 && x.phases[0].First <= call {
		x.phase, x.phases = x.phases[0], x.phases[1:]
		x.now = int64(x.phase.First) * tick
		x.marks.beginPhase(x.phase)
	}
	x.now = int64(call+1) * tick
	switch e := x.ledger.Events[call]; {
	case e == ledger.EmptyCache:
		x.stack, x.kind = x.stackOf(frameKey{phase: x.phase.Name, flush: true}), x.kinds[ledger.Temporary]
	case e < 0:
		x.stack = x.stackOf(frameKey{module: x.ledger.Tensors[^e].Module, phase: x.phase.Name})
		x.kind = x.kinds[x.purposes[^e]]
	case x.real != nil:
		x.stack, x.kind = x.realStack(e), x.kinds[x.purposes[e]]
	default:
		t := &x.ledger.Tensors[e]
		x.stack = x.stackOf(frameKey{op: t.Op, module: t.Module, phase: x.phase.Name})
		x.kind = x.kinds[x.purposes[e]]
	}
}

// around are the frames of torch that a phase runs in, by which readers of
// snapshots know forward, backward and optimizer.
var around = map[string][2]string{
	ledger.Forward: {"_call_impl", "torch/nn/modules/module.py"}, ledger.LossPhase: {"_call_impl", "torch/nn/modules/module.py"},
	ledger.Prefill: {"_call_impl", "torch/nn/modules/module.py"}, ledger.Decode: {"_call_impl", "torch/nn/modules/module.py"},
	ledger.Backward: {"_engine_run_backward", "torch/autograd/graph.py"},
	ledger.Step:     {"step", "torch/optim/optimizer.py"},
}

// plannedFile is the file that frames of a planned run name.
const plannedFile = "planned.py"

// stackOf makes the stack of a call: op, module, what torch has around it, and
// the phase as the program's own line.
func (x *tracer) stackOf(k frameKey) trace.StackID {
	id, ok := x.stacks[k]
	if ok {
		return id
	}
	var frames []trace.FrameID
	add := func(name, file string, line int64) { frames = append(frames, x.frame(name, file, line)) }
	if k.flush {
		add("empty_cache", "torch/cuda/memory.py", 1)
	}
	if op := x.ledger.Text(k.op); op != "" {
		add(op, "??", 0)
	}
	switch module := x.ledger.Text(k.module); {
	case module == "":
	case k.phase == ledger.Step: // what an optimizer is called with is none of the program's lines
		add(module, "??", 0)
	default: // in place of the file, which readers show where they cut names
		add(k.phase, module, 1)
	}
	if f, ok := around[k.phase]; ok {
		add(f[0], f[1], 1)
	}
	add(k.phase, plannedFile, 1)
	id = x.trace.Stacks.Add(frames)
	x.stacks[k] = id
	return id
}

func (x *tracer) frame(name, file string, line int64) trace.FrameID {
	return x.trace.Stacks.AddFrame(trace.Frame{Name: x.trace.Strings.Add(name), File: x.trace.Strings.Add(file), Line: line})
}

// realStack is the stack of a tensor's birth: the op, and the program's frames.
func (x *tracer) realStack(tensor int32) trace.StackID {
	key := realKey{x.ledger.Tensors[tensor].Op, x.real.Of(tensor)}
	id, ok := x.made[key]
	if !ok {
		frames := []trace.FrameID{x.frame(x.ledger.Text(key.op), "??", 0)}
		for _, f := range x.real.Frames(key.stack) {
			frames = append(frames, x.frame(f.Name, f.Filename, f.Line))
		}
		id = x.trace.Stacks.Add(frames)
		x.made[key] = id
	}
	return id
}

// realKey is an op with the stack it was called from.
type realKey struct {
	op    ledger.Name
	stack int32
}

// marks writes annotations for steps and phases.
type marks struct {
	tracer *tracer
	step   int
	open   []string // the step and the phase that are open
	optim  string
}

func (m *marks) beginPhase(p ledger.Phase) {
	if p.Step != m.step {
		m.closeAll()
	} else if n := len(m.open); n > 0 {
		m.mark(false, m.open[n-1])
		m.open = m.open[:n-1]
	}
	if p.Step != m.step && p.Step > 0 {
		m.enter(fmt.Sprintf("ProfilerStep#%d", p.Step))
	}
	m.step = p.Step
	name := p.Name
	if name == ledger.Step {
		name = m.optim
	}
	m.enter(name)
}

func (m *marks) enter(name string) {
	m.mark(true, name)
	m.open = append(m.open, name)
}

// closeAll ends the open annotations.
func (m *marks) closeAll() {
	for i := len(m.open) - 1; i >= 0; i-- {
		m.mark(false, m.open[i])
	}
	m.open = nil
}

// mark is an annotation between the last event and the next.
func (m *marks) mark(begin bool, name string) {
	at := m.tracer.now + 1
	if begin {
		at = m.tracer.now + tick - 1
	}
	m.tracer.trace.Annotations = append(m.tracer.trace.Annotations, trace.Annotation{Begin: begin, Name: m.tracer.trace.Strings.Add(name), Device: 0, Time: at})
}
