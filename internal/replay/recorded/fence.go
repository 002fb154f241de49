package recorded

import (
	"fmt"
	"slices"
	"sort"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// fence is one recorded driver event: the work queued on stream when the block
// at addr was freed.
type fence struct{ stream, addr uint64 }

// fences keeps the driver events that are not finished. Numbers grow with
// time, so of two events on one stream the smaller number is done first.
type fences struct {
	last   driver.Event
	open   map[driver.Event]fence
	byAddr map[uint64][]driver.Event
	done   map[uint64]driver.Event // by stream: every event up to this number is done
}

func newFences() fences {
	return fences{
		open:   make(map[driver.Event]fence),
		byAddr: make(map[uint64][]driver.Event),
		done:   make(map[uint64]driver.Event),
	}
}

// drop forgets a finished event: the block's address may be used again.
func (f *fences) drop(ev driver.Event) {
	x, ok := f.open[ev]
	if !ok {
		return
	}
	delete(f.open, ev)
	rest := slices.DeleteFunc(f.byAddr[x.addr], func(e driver.Event) bool { return e == ev })
	if len(rest) == 0 {
		delete(f.byAddr, x.addr)
	} else {
		f.byAddr[x.addr] = rest
	}
}

// RecordEvent numbers the event; it is done when the recording says that the
// block at addr, or one freed later on the same stream, became free.
func (d *Driver) RecordEvent(stream, addr uint64) (driver.Event, error) {
	f := &d.fences
	f.last++
	f.open[f.last] = fence{stream, addr}
	f.byAddr[addr] = append(f.byAddr[addr], f.last)
	d.run = [2]int{} // the block may be in the run already looked at
	return f.last, nil
}

// EventDone reports whether the recorded run had the event done by now.
func (d *Driver) EventDone(ev driver.Event) (bool, error) {
	x, ok := d.fences.open[ev]
	if !ok {
		return false, fmt.Errorf("recorded device: event %d is not known or already finished", ev)
	}
	d.lookAhead()
	if ev > d.fences.done[x.stream] {
		return false, nil
	}
	d.fences.drop(ev)
	return true, nil
}

// WaitEvent waits for nothing: waiting always ends with the event done.
func (d *Driver) WaitEvent(ev driver.Event) error {
	d.fences.drop(ev)
	return nil
}

// lookAhead marks as done every event guarding a block of the run of
// free_completed at the cursor. A run is looked at once, however many of its
// events the engine emits in between.
func (d *Driver) lookAhead() {
	if d.run[0] <= d.cursor && d.cursor < d.run[1] {
		return
	}
	end := d.runEnd()
	if i := sort.SearchInts(d.waited, d.cursor); i < len(d.waited) && d.waited[i] < end {
		end = d.waited[i]
	}
	d.run = [2]int{d.cursor, end}
	if d.cursor < end {
		d.askedIn = d.run
	}
	f := &d.fences
	for i := d.cursor; i < end; i++ {
		e := d.events.At(i)
		for _, ev := range f.byAddr[e.Addr] {
			s := f.open[ev].stream
			f.done[s] = max(f.done[s], ev)
		}
	}
}

// runEnd returns the end of the run of free_completed events that starts at the
// cursor and counts for this operation.
func (d *Driver) runEnd() int {
	end := d.cursor
	for end < d.events.Len() && d.events.Action(end) == alloc.ActionFreeCompleted && d.counts(end) {
		end++
	}
	return end
}

// Asked gives the run of free_completed events, as positions [start, end), for
// which EventDone last answered true in this operation. Some of its tail may
// in truth have completed a moment later, when the engine waited for the
// device (spec 5.4) after a search that found nothing: the trace shows the two
// alike. If the replay goes wrong in this operation, [Config].Waited tries the
// other reading.
func (d *Driver) Asked() (start, end int) { return d.askedIn[0], d.askedIn[1] }

// Sequence puts blocks about to be returned into the order in which the
// recording returns them. Blocks it does not return now stay, in their order,
// at the end.
func (d *Driver) Sequence(addrs []uint64) {
	if len(addrs) < 2 {
		return
	}
	rank := make(map[uint64]int, len(addrs))
	for _, a := range addrs {
		rank[a] = d.events.Len()
	}
	left := len(addrs)
	for i, end := d.cursor, d.runEnd(); i < end && left > 0; i++ {
		if r, ok := rank[d.events.At(i).Addr]; ok && r == d.events.Len() {
			rank[d.events.At(i).Addr] = i
			left--
		}
	}
	slices.SortStableFunc(addrs, func(a, b uint64) int { return rank[a] - rank[b] })
}

// Mark has nothing to note: what became of the block is in the recording.
func (d *Driver) Mark(addr uint64, streams []uint64) {}

// Passed reports whether the recording returns the block now (spec 5.6).
func (d *Driver) Passed(stream, addr uint64) bool {
	for i, end := d.cursor, d.runEnd(); i < end; i++ {
		if d.events.At(i).Addr == addr {
			return true
		}
	}
	return false
}
