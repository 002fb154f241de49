package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Trace runs a job through the engine and returns what PyTorch's memory history
// of the run would be: every event, the segments at the end, and annotations for
// steps and phases. Frames name the op and the module; times count events. With
// a room it is the run in there, which ends at the request that fails.
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
	return traceOf(ctx, p.run.ledger, q.Room.conditions(q.Settings, j), q.Conf, j)
}

// tick is how many microseconds apart events of a planned run are. Nothing is
// known about real times; all that counts is their order.
const tick = 10

// tracer turns the events of the engine into those of a trace.
type tracer struct {
	l      *ledger.Ledger
	t      *trace.Trace
	phase  ledger.Phase
	stack  trace.StackID // of the running call
	kind   trace.StringID
	now    int64
	stacks map[frameKey]trace.StackID
	kinds  []trace.StringID
	live   map[uint64]trace.StackID
}

// frameKey is what the stack of an allocation depends on.
type frameKey struct {
	op, module ledger.Name
	phase      string
}

func traceOf(ctx context.Context, l *ledger.Ledger, room replay.Conditions, conf string, j *model.Job) (*trace.Trace, error) {
	x := &tracer{
		l: l, stacks: map[frameKey]trace.StackID{}, live: map[uint64]trace.StackID{},
		t: &trace.Trace{
			Strings: &trace.Strings{}, Stacks: trace.NewStacks(),
			Settings: trace.Settings{Known: true, Conf: conf, Parsed: room.Settings, Fields: trace.Extra{{Name: settings.Variables[0], Value: conf}}},
		},
	}
	for _, k := range ledger.Kinds() {
		x.kinds = append(x.kinds, x.t.Strings.Add(k.String()))
	}
	// The program knows how large an endless device must look.
	program, err := Program(l, room.Settings)
	if err != nil {
		return nil, err
	}
	dev := sim.New(sim.Config{TotalMemory: cmp.Or(room.DeviceMemory, program.Memory()), Endless: room.DeviceMemory == 0, Started: true, Events: sim.Manual})
	a := alloc.New(dev, alloc.WithSettings(room.Settings), alloc.WithObserver(x.observe))
	if room.Limit > 0 {
		a.SetLimit(room.Limit)
	}
	others := l.External()
	addrs := make([]uint64, len(l.Tensors))
	purposes := l.Purposes()
	next := 0
	marks := newMarks(x, j)
	for i, e := range l.Events {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for ; next < len(l.Phases) && l.Phases[next].First <= i; next++ {
			x.phase = l.Phases[next]
			marks.begin(x.phase)
		}
		x.now += tick
		if e < 0 {
			t := &l.Tensors[^e]
			x.stack, x.kind = x.stackOf(frameKey{module: t.Module, phase: x.phase.Name}), x.kinds[purposes[^e]]
			if err := a.Free(addrs[^e]); err != nil {
				return nil, err
			}
			continue
		}
		t := &l.Tensors[e]
		x.stack, x.kind = x.stackOf(frameKey{t.Op, t.Module, x.phase.Name}), x.kinds[purposes[e]]
		if err := others.Before(e, dev); err != nil {
			return nil, err
		}
		addr, err := a.Malloc(uint64(t.Bytes), uint64(t.Stream))
		if full := (*alloc.OutOfMemoryError)(nil); errors.As(err, &full) && (room.Limit > 0 || room.DeviceMemory > 0) {
			break // the program ends here
		}
		if err != nil {
			return nil, err
		}
		addrs[e] = addr
	}
	marks.end()
	for _, s := range a.Segments() {
		x.t.Segments = append(x.t.Segments, trace.FromEngine(&s, x.live))
	}
	return x.t, nil
}

// observe appends an event of the running call.
func (x *tracer) observe(e alloc.Event) {
	switch e.Action {
	case alloc.ActionAlloc:
		x.live[e.Addr] = x.stack
	case alloc.ActionFreeCompleted:
		delete(x.live, e.Addr)
	}
	x.t.Events.Append(trace.Event{
		Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Time: x.now, Stack: x.stack, Meta: x.kind,
	})
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
	add := func(name, file string, line int64) {
		frames = append(frames, x.t.Stacks.AddFrame(trace.Frame{Name: x.t.Strings.Add(name), File: x.t.Strings.Add(file), Line: line}))
	}
	if op := x.l.Text(k.op); op != "" {
		add(op, "??", 0)
	}
	switch module := x.l.Text(k.module); {
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
	id = x.t.Stacks.Add(frames)
	x.stacks[k] = id
	return id
}

// marks writes annotations for steps and phases.
type marks struct {
	x     *tracer
	step  int
	open  []string // the step and the phase that are open
	optim string
}

func newMarks(x *tracer, j *model.Job) *marks {
	return &marks{x: x, optim: "Optimizer.step#" + string(j.Optimizer) + ".step"}
}

func (m *marks) begin(p ledger.Phase) {
	if p.Step != m.step {
		m.end()
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

// end closes what is open.
func (m *marks) end() {
	for i := len(m.open) - 1; i >= 0; i-- {
		m.mark(false, m.open[i])
	}
	m.open = nil
}

// mark is an annotation between the last event and the next.
func (m *marks) mark(begin bool, name string) {
	at := m.x.now + 1
	if begin {
		at = m.x.now + tick - 1
	}
	m.x.t.Annotations = append(m.x.t.Annotations, trace.Annotation{Begin: begin, Name: m.x.t.Strings.Add(name), Device: 0, Time: at})
}
