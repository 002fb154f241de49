package verify

import (
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
	"github.com/ashlar-mem/ashlar/trace"
)

// rows are the events of a trace that the engine can produce, read from the
// trace's columns: nothing is copied.
type rows struct {
	trace *trace.Trace
	kept  []int32 // position -> event; nil if every event is kept
}

// newRows leaves out events of kinds that PyTorch 2.11 does not have.
func newRows(t *trace.Trace) *rows {
	r := &rows{trace: t}
	if len(t.Events.Others) == 0 {
		return r
	}
	r.kept = make([]int32, 0, t.Events.Len())
	for i := range t.Events.Len() {
		if t.Events.Action.At(i) < trace.FirstOther {
			r.kept = append(r.kept, int32(i))
		}
	}
	return r
}

// Len returns the number of rows.
func (r *rows) Len() int {
	if r.kept != nil {
		return len(r.kept)
	}
	return r.trace.Events.Len()
}

// event returns the number of a row's event in the trace.
func (r *rows) event(i int) int {
	if r.kept != nil {
		return int(r.kept[i])
	}
	return i
}

// At returns a row as package recorded wants it.
func (r *rows) At(i int) recorded.Event {
	i = r.event(i)
	e := &r.trace.Events
	return recorded.Event{
		Action: e.Action.At(i), Addr: e.Addr.At(i), Size: e.Size.At(i), Stream: e.Streams[e.Stream.At(i)], Op: -1,
	}
}

// Action returns the action of a row.
func (r *rows) Action(i int) trace.Action { return r.trace.Events.Action.At(r.event(i)) }

func (r *rows) addr(i int) uint64         { return r.trace.Events.Addr.At(r.event(i)) }
func (r *rows) stack(i int) trace.StackID { return r.trace.Events.Stack.At(r.event(i)) }

func (r *rows) isMalloc(i int) bool  { return isMalloc(r.Action(i)) }
func (r *rows) isRelease(i int) bool { return isRelease(r.Action(i)) }

// cutFree returns the address of a block whose free was requested just before
// the first row and completed in it; 0 if the trace does not begin so.
func (r *rows) cutFree() uint64 {
	if r.Len() > 0 && r.Action(0) == alloc.ActionFreeCompleted {
		return r.addr(0)
	}
	return 0
}

// atOnce reports whether the free requested in a row is completed in the next.
func (r *rows) atOnce(i int) bool {
	if i+1 >= r.Len() || r.Action(i+1) != alloc.ActionFreeCompleted || r.addr(i+1) != r.addr(i) {
		return false
	}
	// One that an allocation completes has the allocation's stack.
	x, y := r.stack(i), r.stack(i+1)
	return x <= trace.EmptyStack || y <= trace.EmptyStack || x == y
}

// pool returns the pool of a row's event, which events of PyTorch 2.12 and later
// have.
func (r *rows) pool(i int) (id alloc.PoolID, ok bool) {
	e := &r.trace.Events
	ref := e.Pool.At(r.event(i))
	if ref == trace.NoPool {
		return alloc.PoolID{}, false
	}
	return e.PoolID(ref), true
}

// pooled reports whether some event has a private pool.
func (r *rows) pooled() bool {
	return slices.ContainsFunc(r.trace.Events.Pools, func(id alloc.PoolID) bool { return id != alloc.PoolID{} })
}

// hinted returns the row of an allocation at a given address that begins in row i,
// and the row behind its events; see [trace.Trace.Hinted].
func (r *rows) hinted(i int) (target, end int, ok bool) {
	if r.Action(i) != alloc.ActionAlloc || !r.trace.Hinted(r.event(i)) {
		return 0, 0, false
	}
	if i+2 < r.Len() && r.Action(i+1) == alloc.ActionAlloc && r.Action(i+2) == alloc.ActionFreeRequested &&
		r.addr(i+2) == r.addr(i) && r.trace.Hinted(r.event(i+2)) {
		end := i + 3
		if end < r.Len() && r.Action(end) == alloc.ActionFreeCompleted && r.addr(end) == r.addr(i) {
			end++
		}
		return i + 1, end, true
	}
	return i, i + 1, true
}

// isCall reports whether an event stands for a call, and is not caused by one.
func isCall(a trace.Action) bool {
	return a == alloc.ActionFreeRequested || a == alloc.ActionSnapshot || isMalloc(a)
}

func isMalloc(a trace.Action) bool { return a == alloc.ActionAlloc || a == alloc.ActionOOM }

func isRelease(a trace.Action) bool {
	return a == alloc.ActionSegmentFree || a == alloc.ActionSegmentUnmap
}
