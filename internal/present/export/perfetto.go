package export

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// What is shown of long texts.
const (
	maxName  = 200 // bytes of a name
	maxStack = 500 // frames
)

// The categories of events, by which they can be told apart in queries.
const (
	categoryAllocation = "allocation"
	categoryAnnotation = "annotation"
	categoryOOM        = "oom"
)

// The order of the tracks of a device.
const (
	rankReserved = iota
	rankRequested
	rankOOM
	rankAnnotations
	rankAllocations
)

// Perfetto writes traces as a trace of Perfetto, in its protocol buffer format.
// Each device has counters of reserved and requested bytes, slices for
// annotations and for allocations of at least MinSlice bytes, and an instant
// for each oom. An allocation lasts until its free is completed; one without an
// end was live at the end of the trace.
//
// Without times in the file, events follow each other by a microsecond.
func Perfetto(ctx context.Context, w io.Writer, traces []*trace.Trace, o Options) error {
	packets := newPacketWriter(w)
	p := newProgress(traces, o)
	for _, t := range traces {
		r := run.New(t, nil)
		d := &deviceWriter{
			packetWriter: packets, run: r, t: t, line: r.Outline(),
			least: cmp.Or(o.MinSlice, DefaultMinSlice), live: map[uint64]uint64{}, stacks: map[trace.StackID]message{},
		}
		if err := d.write(ctx, p); err != nil {
			return err
		}
	}
	return packets.w.Flush()
}

// deviceWriter writes the tracks of one device.
type deviceWriter struct {
	*packetWriter
	run   *run.Run
	t     *trace.Trace
	line  *timeline.Timeline
	least uint64

	times     bool
	first     int64 // time of an event
	earliest  int64 // or annotation
	zero      int64 // added to times, so that none is negative
	root      uint64
	reserved  counterTrack
	requested counterTrack
	ooms      uint64 // track

	lanes  lanes
	live   map[uint64]uint64 // address -> track of its slice
	stacks map[trace.StackID]message
}

// counterTrack is a counter with its last value.
type counterTrack struct {
	uuid  uint64
	value uint64
	known bool
}

func (d *deviceWriter) write(ctx context.Context, p *progress) error {
	d.findTimes()
	if err := d.addTracks(); err != nil {
		return err
	}
	if err := d.start(); err != nil {
		return err
	}
	if err := d.annotations(); err != nil {
		return err
	}
	return walk(ctx, d.line, p, d.event)
}

// findTimes looks for the first time of the trace.
func (d *deviceWriter) findTimes() {
	first := int64(math.MaxInt64)
	for i := range d.t.Events.Len() {
		if t := d.t.Events.Time.At(i); t != trace.NoTime {
			d.times = true
			first = min(first, t)
		}
	}
	if !d.times {
		return
	}
	d.first, d.earliest = first, first
	for _, a := range d.t.Annotations {
		if a.Time != trace.NoTime {
			d.earliest = min(d.earliest, a.Time)
		}
	}
	d.zero = min(max(0, -d.earliest), math.MaxInt64/1000)
}

// ns turns microseconds into the unit of a trace.
func (d *deviceWriter) ns(us int64) uint64 {
	us = min(us, math.MaxInt64/1000-d.zero) + d.zero
	return uint64(max(us, 0)) * 1000
}

// timestamp returns the time of event i.
func (d *deviceWriter) timestamp(i int, time int64) uint64 {
	switch {
	case !d.times:
		return uint64(i) * 1000
	case time == trace.NoTime:
		return d.ns(d.first)
	}
	return d.ns(time)
}

func (d *deviceWriter) addTracks() error {
	name := fmt.Sprintf("GPU %d memory", d.t.Device)
	if d.t.Host {
		name = "host memory"
	}
	var err error
	if d.root, err = d.track(0, name, d.t.Device, false); err != nil {
		return err
	}
	if d.reserved.uuid, err = d.track(d.root, "reserved", rankReserved, true); err != nil {
		return err
	}
	d.requested.uuid, err = d.track(d.root, "requested (live)", rankRequested, true)
	return err
}

// count writes the value of a counter if it has changed.
func (d *deviceWriter) count(c *counterTrack, ns, value uint64) error {
	if c.known && c.value == value {
		return nil
	}
	c.value, c.known = value, true
	var ev message
	ev.uint(eventType, typeCounter)
	ev.uint(eventTrack, c.uuid)
	ev.int(eventCounter, int64(value))
	return d.packetWriter.event(ns, ev)
}

// start writes what was there before the first event.
func (d *deviceWriter) start() error {
	stacks := map[uint64]trace.StackID{} // of blocks that stay to the end
	for i := range d.t.Segments {
		for _, b := range d.t.Segments[i].Blocks {
			stacks[b.Address] = b.Stack
		}
	}
	ns := d.timestamp(0, d.first)
	for _, s := range d.line.Start.Segments {
		for _, b := range s.Blocks {
			if b.State == alloc.Inactive || b.RequestedSize < d.least {
				continue
			}
			stack := trace.NoStack
			if b.Size > 0 {
				stack = stacks[b.Address]
			}
			ev := trace.Event{Addr: b.Address, Size: b.RequestedSize, Stream: s.Stream, Stack: stack}
			if err := d.begin(-1, ns, &ev); err != nil {
				return err
			}
		}
	}
	before := d.line.Before()
	if err := d.count(&d.reserved, ns, before.Reserved); err != nil {
		return err
	}
	return d.count(&d.requested, ns, before.Requested)
}

// event writes what an event changes.
func (d *deviceWriter) event(c *timeline.Cursor) error {
	ev := &c.Event
	ns := d.timestamp(c.Index, ev.Time)
	if err := d.count(&d.reserved, ns, c.Totals.Reserved); err != nil {
		return err
	}
	if err := d.count(&d.requested, ns, c.Totals.Requested); err != nil {
		return err
	}
	switch ev.Action {
	case alloc.ActionAlloc:
		if ev.Size >= d.least {
			return d.begin(c.Index, ns, ev)
		}
	case alloc.ActionFreeCompleted:
		return d.endSlice(ns, ev.Addr)
	case alloc.ActionOOM:
		return d.oom(c.Index, ns, ev)
	}
	return nil
}

// begin begins the slice of an allocation; index is -1 for one that was there
// before.
func (d *deviceWriter) begin(index int, ns uint64, ev *trace.Event) error {
	if err := d.endSlice(ns, ev.Addr); err != nil { // only if the file contradicts itself
		return err
	}
	track, err := d.lanes.take(func() (uint64, error) {
		return d.track(d.root, fmt.Sprintf("allocations from %s", units.Size(d.least)), rankAllocations, false)
	})
	if err != nil {
		return err
	}
	d.live[ev.Addr] = track
	name := "before the first event"
	if index >= 0 || ev.Stack > trace.EmptyStack {
		name = d.name(ev.Stack)
	}
	e := d.newEvent(typeBegin, track, categoryAllocation, name)
	d.annotate(&e, "size", annotationUint, ev.Size)
	d.annotate(&e, "addr", annotationPointer, ev.Addr)
	d.details(&e, index, ev)
	return d.packetWriter.event(ns, e)
}

// endSlice ends the slice of the allocation at an address, if it has one.
func (d *deviceWriter) endSlice(ns, addr uint64) error {
	track, ok := d.live[addr]
	if !ok {
		return nil
	}
	delete(d.live, addr)
	d.lanes.give(track)
	return d.packetWriter.event(ns, endOf(track))
}

func endOf(track uint64) message {
	var e message
	e.uint(eventType, typeEnd)
	e.uint(eventTrack, track)
	return e
}

// oom writes an instant.
func (d *deviceWriter) oom(index int, ns uint64, ev *trace.Event) error {
	if d.ooms == 0 {
		var err error
		if d.ooms, err = d.track(d.root, "out of memory", rankOOM, false); err != nil {
			return err
		}
	}
	e := d.newEvent(typeInstant, d.ooms, categoryOOM, "OOM: "+units.Size(ev.Size))
	d.annotate(&e, "size", annotationUint, ev.Size)
	d.annotate(&e, "device_free", annotationUint, ev.Addr)
	d.details(&e, index, ev)
	return d.packetWriter.event(ns, e)
}

// newEvent returns an event with its name.
func (d *deviceWriter) newEvent(kind, track uint64, category, name string) message {
	var e message
	e.uint(eventType, kind)
	e.uint(eventTrack, track)
	e.text(eventCategory, category)
	e.uint(eventNameID, d.intern(tableNames, capped(name, maxName)))
	return e
}

// details annotates an event with its stream, its number and its stack.
func (d *deviceWriter) details(e *message, index int, ev *trace.Event) {
	d.annotate(e, "stream", annotationInt, ev.Stream)
	if index >= 0 {
		d.annotate(e, "event", annotationUint, uint64(index))
	}
	frames := d.t.Stacks.Frames(ev.Stack)
	if len(frames) == 0 {
		return
	}
	a, ok := d.stacks[ev.Stack]
	if !ok {
		a = d.stack(frames)
		d.stacks[ev.Stack] = a
	}
	e.message(eventAnnotations, a)
}

// stack returns an annotation with a text for each frame, innermost first.
func (d *deviceWriter) stack(frames []trace.FrameID) message {
	var a message
	a.uint(annotationNameID, d.intern(tableAnnotationNames, "stack"))
	add := func(text string) {
		var item message
		item.uint(annotationTextID, d.intern(tableTexts, capped(text, 2*maxName)))
		a.message(annotationArray, item)
	}
	for i, id := range frames {
		if i == maxStack {
			add(fmt.Sprintf("and %d more", len(frames)-i))
			break
		}
		f := d.t.Stacks.Frame(id)
		add(fmt.Sprintf("%s %s:%d", d.t.Strings.Text(f.Name), d.t.Strings.Text(f.File), f.Line))
	}
	return a
}

// name returns the place of a stack: the innermost frame of the user's program,
// or the innermost one of all.
func (d *deviceWriter) name(id trace.StackID) string {
	site, ok := timeline.SiteOf(d.t, id)
	switch {
	case !ok:
		return "no stack"
	case site.HasUser:
		return site.User.String()
	}
	return site.Inner.String()
}
