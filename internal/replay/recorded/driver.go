package recorded

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// Event is one row of the recorded trace.
type Event struct {
	Action alloc.Action
	Addr   uint64 // for an oom the device's free memory
	Size   uint64
	Stream uint64
	Op     int // number of the operation that caused it; -1 if the recording does not say
}

func (e Event) String() string {
	if e.Action == alloc.ActionOOM {
		return fmt.Sprintf("oom size %d stream %d device_free %d", e.Size, e.Stream, e.Addr)
	}
	return fmt.Sprintf("%s addr %#x size %d stream %d", e.Action, e.Addr, e.Size, e.Stream)
}

// Events are the rows of a recorded trace, in order.
type Events interface {
	Len() int
	At(i int) Event
	Action(i int) alloc.Action // of event i
}

// List is Events held in memory.
type List []Event

// Len returns the number of events.
func (l List) Len() int { return len(l) }

// At returns event i.
func (l List) At(i int) Event { return l[i] }

// Action returns the action of event i.
func (l List) Action(i int) alloc.Action { return l[i].Action }

// Config is what a Driver answers from.
type Config struct {
	TotalMemory uint64
	Events      Events

	// Waited holds positions in Events, ascending. The free_completed at such
	// a position, and the run that follows it, came from waiting for the
	// device (WaitEvent) and not from asking (EventDone). A trace shows both
	// alike; see [Driver.Asked].
	Waited []int
}

// Driver answers from a recording. See the package comment.
type Driver struct {
	total   uint64
	events  Events
	cursor  int
	op      int // -1: no operation named
	refusal string

	ooms     []int            // positions of oom events, from the cursor on
	maps     map[uint64][]int // by stream: positions of segment_map events, from the cursor on
	reserved []span           // live reservations, by address

	fences  fences
	waited  []int
	run     [2]int // rows known to be answered as done; empty when stale
	askedIn [2]int
}

var (
	_ driver.Driver         = (*Driver)(nil)
	_ driver.Sequencer      = (*Driver)(nil)
	_ driver.CaptureTracker = (*Driver)(nil)
	_ driver.Adopter        = (*Driver)(nil)
)

// New makes a Driver with its cursor at the first event.
func New(c Config) *Driver {
	d := &Driver{
		total:  c.TotalMemory,
		events: c.Events,
		op:     -1,
		maps:   make(map[uint64][]int),
		fences: newFences(),
		waited: c.Waited,
	}
	if d.events == nil {
		d.events = List(nil)
	}
	for i := range d.events.Len() {
		switch d.events.Action(i) {
		case alloc.ActionOOM:
			d.ooms = append(d.ooms, i)
		case alloc.ActionSegmentMap:
			stream := d.events.At(i).Stream
			d.maps[stream] = append(d.maps[stream], i)
		}
	}
	return d
}

// Advance moves the cursor past one event. It is called for every event the
// engine emits.
func (d *Driver) Advance() {
	if d.cursor < d.events.Len() {
		d.cursor++
	}
}

// Cursor returns the position of the next recorded event.
func (d *Driver) Cursor() int { return d.cursor }

// BeginOp says that operation n starts now. Events that carry another
// operation's number do not count until the next call.
func (d *Driver) BeginOp(n int) {
	d.op = n
	d.run = [2]int{}
	d.askedIn = [2]int{}
	d.refusal = ""
}

// Refusal says why the last refused request of this operation was refused, or
// is empty.
func (d *Driver) Refusal() string { return d.refusal }

// TotalMemory returns the size of the recorded device.
func (d *Driver) TotalMemory() uint64 { return d.total }

// MemInfo reports the free memory the next oom event noted; 0 if there is none.
func (d *Driver) MemInfo() (free, total uint64, err error) {
	free, _ = d.NextOOM()
	return free, d.total, nil
}

// NextOOM is the free memory the next oom event noted, if there is one.
func (d *Driver) NextOOM() (free uint64, ok bool) {
	for len(d.ooms) > 0 && d.ooms[0] < d.cursor {
		d.ooms = d.ooms[1:]
	}
	if len(d.ooms) == 0 {
		return 0, false
	}
	return d.events.At(d.ooms[0]).Addr, true
}

// Malloc gives the address of the recorded segment_alloc at the cursor.
func (d *Driver) Malloc(size, stream uint64) (uint64, error) {
	if e, ok := d.next(); ok && e.Action == alloc.ActionSegmentAlloc {
		return e.Addr, nil
	}
	return 0, d.Refuse("a segment of %d bytes on stream %d", size, stream)
}

// Free gives a segment back.
func (d *Driver) Free(addr, size uint64) error { return nil }

// Map succeeds if the event at the cursor is this mapping.
func (d *Driver) Map(addr, size, granule uint64) error {
	if e, ok := d.next(); ok && e.Action == alloc.ActionSegmentMap && e.Addr == addr && e.Size == size {
		return nil
	}
	return d.Refuse("memory behind [%#x, +%d)", addr, size)
}

// Unmap takes the memory behind a range away.
func (d *Driver) Unmap(addr, size, granule, stream uint64) error { return nil }

// next is the event at the cursor if it counts for the current operation.
func (d *Driver) next() (Event, bool) {
	if d.cursor == d.events.Len() || !d.counts(d.cursor) {
		return Event{}, false
	}
	return d.events.At(d.cursor), true
}

// counts reports whether the event at position i may belong to the current
// operation.
func (d *Driver) counts(i int) bool {
	if d.op < 0 {
		return true
	}
	op := d.events.At(i).Op
	return op == d.op || op < 0
}

// NextIs reports whether the event at the cursor is of that kind.
func (d *Driver) NextIs(action alloc.Action) bool {
	return d.cursor < d.events.Len() && d.counts(d.cursor) && d.events.Action(d.cursor) == action
}

// Refuse notes a refusal and why, for whoever has to explain a difference, and
// returns the error for it.
func (d *Driver) Refuse(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if e, ok := d.next(); ok {
		d.refusal = fmt.Sprintf("asked for %s, where the recording has event %d: %s", what, d.cursor, e)
	} else {
		d.refusal = fmt.Sprintf("asked for %s, where the recording has no further event of this operation", what)
	}
	return fmt.Errorf("recorded device: %s: %w", d.refusal, driver.ErrOutOfMemory)
}
