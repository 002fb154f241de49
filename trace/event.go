package trace

import (
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
)

// NoTime is the time of an event whose file has none.
const NoTime = math.MinInt64

// Event is one entry of a trace.
type Event struct {
	Action  Action
	Addr    uint64 // for an oom the device's free memory
	Size    uint64 // as requested; of an oom rounded
	Stream  uint64
	Time    int64 // microseconds since the Unix epoch, or NoTime
	Stack   StackID
	Pool    PoolRef
	Meta    StringID // user_metadata
	Compile StringID // compile_context
}

// Action says what an event is about: one of alloc's actions, or one that only
// later versions of PyTorch know, whose name the trace keeps.
type Action = alloc.Action

// PoolRef names an entry of Events.Pools.
type PoolRef uint32

// NoPool is the pool of an event whose file has none.
const NoPool PoolRef = 0

// Events are the events of a trace, by column.
type Events struct {
	Action  Column[Action]
	Addr    Column[uint64]
	Size    Column[uint64]
	Stream  Column[uint32] // position in Streams
	Time    Column[int64]
	Stack   Column[StackID]
	Pool    Column[PoolRef]
	Meta    Column[StringID]
	Compile Column[StringID]

	Streams []uint64       // raw handles
	Pools   []alloc.PoolID // from index 1 on
	Others  []string       // names of actions from FirstOther on

	// Extra holds the fields of single events that have no column, by event.
	Extra map[int]Extra

	streamIDs map[uint64]uint32
	poolIDs   map[alloc.PoolID]PoolRef
}

// FirstOther is the first action that is not one of alloc's.
const FirstOther Action = 64

// Len returns the number of events.
func (e *Events) Len() int { return e.Action.Len() }

// At returns event i.
func (e *Events) At(i int) Event {
	return Event{
		Action: e.Action.At(i), Addr: e.Addr.At(i), Size: e.Size.At(i), Stream: e.Streams[e.Stream.At(i)],
		Time: e.Time.At(i), Stack: e.Stack.At(i), Pool: e.Pool.At(i), Meta: e.Meta.At(i), Compile: e.Compile.At(i),
	}
}

// Append adds an event.
func (e *Events) Append(ev Event) {
	stream := e.streamID(ev.Stream)
	if !e.Action.put(ev.Action) {
		e.Action.appendSlowly(ev.Action)
	}
	if !e.Addr.put(ev.Addr) {
		e.Addr.appendSlowly(ev.Addr)
	}
	if !e.Size.put(ev.Size) {
		e.Size.appendSlowly(ev.Size)
	}
	if !e.Stream.put(stream) {
		e.Stream.appendSlowly(stream)
	}
	if !e.Time.put(ev.Time) {
		e.Time.appendSlowly(ev.Time)
	}
	if !e.Stack.put(ev.Stack) {
		e.Stack.appendSlowly(ev.Stack)
	}
	if !e.Pool.put(ev.Pool) {
		e.Pool.appendSlowly(ev.Pool)
	}
	if !e.Meta.put(ev.Meta) {
		e.Meta.appendSlowly(ev.Meta)
	}
	if !e.Compile.put(ev.Compile) {
		e.Compile.appendSlowly(ev.Compile)
	}
}

func (e *Events) streamID(stream uint64) uint32 {
	// The stream of the last event is nearly always the one.
	if n := e.Stream.Len(); n > 0 {
		if id := e.Stream.At(n - 1); e.Streams[id] == stream {
			return id
		}
	}
	id, ok := e.streamIDs[stream]
	if !ok {
		if e.streamIDs == nil {
			e.streamIDs = map[uint64]uint32{}
		}
		id = uint32(len(e.Streams))
		e.Streams = append(e.Streams, stream)
		e.streamIDs[stream] = id
	}
	return id
}

// PoolRef returns the reference for a pool id, adding it at first use.
func (e *Events) PoolRef(id alloc.PoolID) PoolRef {
	ref, ok := e.poolIDs[id]
	if !ok {
		if e.poolIDs == nil {
			e.poolIDs = map[alloc.PoolID]PoolRef{}
			e.Pools = []alloc.PoolID{{}}
		}
		ref = PoolRef(len(e.Pools))
		e.Pools = append(e.Pools, id)
		e.poolIDs[id] = ref
	}
	return ref
}

// PoolID returns the pool id that a reference stands for, the default one's for
// [NoPool].
func (e *Events) PoolID(ref PoolRef) alloc.PoolID {
	if ref == NoPool {
		return alloc.PoolID{}
	}
	return e.Pools[ref]
}

// ActionNamed returns the action with the given name; names that alloc does
// not know get numbers from FirstOther on.
func (e *Events) ActionNamed(name string) (Action, error) {
	if a, ok := alloc.ParseAction(name); ok {
		return a, nil
	}
	for i, n := range e.Others {
		if n == name {
			return FirstOther + Action(i), nil
		}
	}
	if len(e.Others) >= math.MaxUint8-int(FirstOther) {
		return 0, fmt.Errorf("more than %d unknown actions, the last is %q", len(e.Others), name)
	}
	e.Others = append(e.Others, name)
	return FirstOther + Action(len(e.Others)-1), nil
}

// ActionName returns the name of an action.
func (e *Events) ActionName(a Action) string {
	if i := int(a) - int(FirstOther); i >= 0 && i < len(e.Others) {
		return e.Others[i]
	}
	return a.String()
}

// Cut removes the events from n on and returns them.
func (e *Events) Cut(n int) Events {
	if n == 0 {
		all := *e
		*e = Events{}
		return all
	}
	var rest Events
	for i := n; i < e.Len(); i++ {
		rest.Copy(e, i)
	}
	e.truncate(n)
	return rest
}

// Copy adds event i of another table.
func (e *Events) Copy(from *Events, i int) {
	ev := from.At(i)
	if ev.Pool != NoPool {
		ev.Pool = e.PoolRef(from.Pools[ev.Pool])
	}
	if ev.Action >= FirstOther {
		ev.Action, _ = e.ActionNamed(from.ActionName(ev.Action)) // from has no more names than fit
	}
	if x, ok := from.Extra[i]; ok {
		if e.Extra == nil {
			e.Extra = map[int]Extra{}
		}
		e.Extra[e.Len()] = x
	}
	e.Append(ev)
}

// truncate drops the events from n on.
func (e *Events) truncate(n int) {
	e.Action.truncate(n)
	e.Addr.truncate(n)
	e.Size.truncate(n)
	e.Stream.truncate(n)
	e.Time.truncate(n)
	e.Stack.truncate(n)
	e.Pool.truncate(n)
	e.Meta.truncate(n)
	e.Compile.truncate(n)
	for i := range e.Extra {
		if i >= n {
			delete(e.Extra, i)
		}
	}
}
