package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// Verify runs the recording through the engine and compares everything the
// recording tells: events, addresses, pool ids, statistics, final segments and
// out-of-memory messages. The run stops at the first difference.
//
// The error is that of the context, or says that the recording's own settings
// cannot be used.
func Verify(ctx context.Context, rec *Recording) (*replay.Result, error) {
	return VerifyOver(ctx, rec, nil)
}

// VerifyOver is Verify with a driver that dresses up the recorded one: it asks
// the recorded driver everything, so that the engine gets the recorded answers,
// and may do the same on a real device besides. It is made anew for every
// reading of the recording that is tried.
func VerifyOver(ctx context.Context, rec *Recording, wrap func(*recorded.Driver) driver.Driver) (*replay.Result, error) {
	v, err := attempt(ctx, rec, nil, wrap)
	if err != nil {
		return nil, err
	}
	return v.otherReadings(ctx)
}

// maxAttempts bounds how many readings of ambiguous completions are tried.
const maxAttempts = 64

// otherReadings looks, if the run went wrong, for the reading of the trace
// under which it goes further. A trace does not say whether a free that was
// pending completed when the allocation began (before its search) or when it
// waited for the device (after the search found nothing); the first is taken
// unless only the second explains what follows. See recorded.Driver.Asked.
func (v *verifier) otherReadings(ctx context.Context) (*replay.Result, error) {
	for tries := 0; v.diff != nil; {
		start, end := v.run.dev.Asked()
		better := false
		for at := end - 1; at >= start && end > start && !better && tries < maxAttempts; at-- {
			tries++
			waited := append(slices.Clone(v.waited), at)
			slices.Sort(waited)
			w, err := attempt(ctx, v.rec, waited, v.wrap)
			if err != nil {
				return nil, err
			}
			if w.diff == nil || w.diff.Operation > v.diff.Operation {
				v, better = w, true
			}
		}
		if !better {
			break
		}
	}
	return v.result(), nil
}

// verifier compares one run with its recording.
type verifier struct {
	rec    *Recording
	run    *run
	waited []int
	wrap   func(*recorded.Driver) driver.Driver

	op          int // the operation that runs
	events      int // identical so far
	checkpoints int // identical so far
	ooms        int // allocations failed so far
	addrs       []uint64
	diff        *replay.Difference
	undefined   *replay.Difference // where PyTorch became undefined; often nothing visible follows
}

func attempt(ctx context.Context, rec *Recording, waited []int, wrap func(*recorded.Driver) driver.Driver) (*verifier, error) {
	v := &verifier{rec: rec, waited: waited, wrap: wrap}
	var err error
	if v.run, err = newRun(rec, waited, wrap, v.observe); err != nil {
		return nil, err
	}
	for i := range rec.Ops {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		v.checkpoint(i)
		if v.diff != nil {
			return v, nil
		}
		v.step(i)
		if v.diff != nil {
			return v, nil
		}
	}
	v.checkpoint(len(rec.Ops))
	v.finish()
	return v, nil
}

func (v *verifier) result() *replay.Result {
	if v.diff != nil && v.undefined != nil {
		v.diff = v.undefined // whatever differs later is a consequence
	}
	r := &replay.Result{
		Kind:            "recording",
		Version:         v.rec.Version(),
		Identical:       v.diff == nil,
		Events:          len(v.rec.Trace),
		IdenticalEvents: v.events,
		Checkpoints:     len(v.rec.Checkpoints),
		Segments:        len(v.rec.Segments),
		First:           v.diff,
		Stats:           v.run.allocator.Stats().Map(),
		Waited:          v.waited,
	}
	if r.Version != 0 {
		r.Writer = pytorch.Exactly(r.Version)
	}
	return r
}

// surroundings describes where the run stands.
func (v *verifier) surroundings(addrs ...uint64) []string {
	return verify.Surroundings(v.run.allocator, v.run.dev, recorded.List(v.rec.Trace), v.events, addrs)
}

// differ notes a difference unless there is one already; addrs are the
// addresses it is about.
func (v *verifier) differ(kind, what, expected, got string, addrs ...uint64) {
	if v.diff != nil {
		return
	}
	v.diff = v.difference(kind, what, expected, got)
	v.addrs = addrs
}

func (v *verifier) difference(kind, what, expected, got string) *replay.Difference {
	d := &replay.Difference{Kind: kind, Event: v.events, Operation: v.op, What: what, Expected: expected, Got: got}
	if v.op < len(v.rec.Ops) {
		d.OperationText = v.rec.Ops[v.op].String()
	}
	return d
}

// observe compares an event with the recorded one. It runs under the
// allocator's lock, so the surroundings of a difference are looked at later.
func (v *verifier) observe(e alloc.Event) {
	if v.diff != nil {
		return
	}
	if v.events == len(v.rec.Trace) {
		v.differ(replay.DiffEvent, "an event too many", "no further event", e.String(), verify.AddressOf(e.Action, e.Addr))
		return
	}
	want := v.rec.Trace[v.events]
	if want.Op >= 0 && want.Op != v.op {
		v.differ(replay.DiffEvent, "an event too many", fmt.Sprintf("no further event here; the next is %s in operation %d", want, want.Op),
			e.String(), verify.AddressOf(e.Action, e.Addr))
		return
	}
	if want.Action != e.Action || want.Addr != e.Addr || want.Size != e.Size || want.Stream != e.Stream {
		v.differ(replay.DiffEvent, "another event", want.String(), e.String(), verify.AddressOf(want.Action, want.Addr), verify.AddressOf(e.Action, e.Addr))
		return
	}
	v.events++
}

// step performs operation i and compares what it did.
func (v *verifier) step(i int) {
	v.op = i
	op := &v.rec.Ops[i]
	if op.Kind == OpException {
		v.differ(replay.DiffException, "PyTorch itself raised an error; the recording cannot be compared any further", op.Text+": "+op.Detail, "")
	} else {
		addr, err := v.run.do(i)
		if e, ok := v.missing(i); ok {
			v.differ(replay.DiffEvent, "an event is missing", e, "no further event in this operation")
		}
		v.compareReturn(op, addr, err)
	}
	if v.undefined == nil {
		if u := v.run.allocator.Undefined(); u != nil {
			v.undefined = v.difference(replay.DiffUndefined, u.Error(), "", "")
			v.undefined.State = v.surroundings()
		}
	}
	if v.diff != nil {
		v.diff.State = v.surroundings(v.addrs...)
	}
}

// missing reports an event recorded for operation i that did not come.
func (v *verifier) missing(i int) (string, bool) {
	if v.events < len(v.rec.Trace) && v.rec.Trace[v.events].Op == i {
		return v.rec.Trace[v.events].String(), true
	}
	return "", false
}

// compareReturn compares what an operation returned.
func (v *verifier) compareReturn(op *Op, addr uint64, err error) {
	var oom *alloc.OutOfMemoryError
	switch {
	case op.Kind == OpAlloc && (err == nil || errors.As(err, &oom)):
		v.compareAlloc(op, addr, oom)
	case err != nil:
		v.differ(replay.DiffRefused, "the engine refused the operation", "done", err.Error())
	case op.Kind == OpNewPool:
		if id := v.run.pools[op.ID].ID(); id != op.Pool {
			v.differ(replay.DiffPool, "the pool got another id", op.Pool.String(), id.String())
		}
	}
}

func (v *verifier) compareAlloc(op *Op, addr uint64, oom *alloc.OutOfMemoryError) {
	switch {
	case oom != nil && !op.Failed:
		v.differ(replay.DiffAddress, "the allocation failed", fmt.Sprintf("address %#x", op.Addr), oom.Error(), op.Addr)
	case oom == nil && op.Failed:
		v.differ(replay.DiffAddress, "the allocation did not fail", "out of memory", fmt.Sprintf("address %#x", addr), addr)
	case oom != nil:
		v.compareMessage(oom.Error())
	case addr != op.Addr:
		v.differ(replay.DiffAddress, "the allocation returned another address", fmt.Sprintf("%#x", op.Addr), fmt.Sprintf("%#x", addr), op.Addr, addr)
	}
}

// compareMessage compares the message of a failed allocation with the recorded
// one; only the first failures have one.
func (v *verifier) compareMessage(got string) {
	if v.ooms < len(v.rec.OOMMessages) {
		want := withoutProcesses(v.rec.OOMMessages[v.ooms])
		if got = withoutProcesses(got); got != want {
			v.differ(replay.DiffMessage, "the out-of-memory message differs", want, got)
		}
	}
	v.ooms++
}

// run drives the operations of a recording through an allocator whose device
// is the recorded one.
type run struct {
	*Performer
	dev *recorded.Driver
}

// newRun sets the allocator up; observe is called for every event. waited is
// passed to the device, which wrap, if it is not nil, dresses up as another.
func newRun(rec *Recording, waited []int, wrap func(*recorded.Driver) driver.Driver, observe func(alloc.Event)) (*run, error) {
	dev := recorded.New(recorded.Config{TotalMemory: rec.TotalMemory, Events: recorded.List(rec.Trace), Waited: waited})
	var d driver.Driver = dev
	if wrap != nil {
		d = wrap(dev)
	}
	a, err := rec.Allocator(d, alloc.WithObserver(func(e alloc.Event) {
		observe(e)
		dev.Advance()
	}))
	if err != nil {
		return nil, err
	}
	p, err := NewPerformer(rec, a, rec.Streams)
	return &run{p, dev}, err
}

// do performs operation i. For an allocation it returns the address.
func (r *run) do(i int) (uint64, error) {
	r.dev.BeginOp(i)
	return r.Do(i)
}
