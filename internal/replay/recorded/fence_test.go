package recorded

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

func record(t *testing.T, d *Driver, stream, addr uint64) driver.Event {
	t.Helper()
	ev, err := d.RecordEvent(stream, addr)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

func checkDone(t *testing.T, d *Driver, ev driver.Event, want bool) {
	t.Helper()
	got, err := d.EventDone(ev)
	if err != nil || got != want {
		t.Fatalf("event %d at cursor %d: done %v, %v; want %v", ev, d.Cursor(), got, err, want)
	}
}

// A block guarded on two streams completes when the slower one is done; the
// event of the faster one is done before, because a later block of that stream
// completes.
func TestEventsCompleteInStreamOrder(t *testing.T) {
	d := newDriver(
		row(alloc.ActionFreeRequested, 0xb, 8, 0),
		row(alloc.ActionFreeCompleted, 0xc, 8, 0),
		row(alloc.ActionAlloc, 0xd, 8, 0),
		row(alloc.ActionFreeCompleted, 0xb, 8, 0),
		row(alloc.ActionAlloc, 0xe, 8, 0),
	)
	b1, b2 := record(t, d, 1, 0xb), record(t, d, 2, 0xb)
	c1 := record(t, d, 1, 0xc)
	z1 := record(t, d, 1, 0xf)
	checkDone(t, d, b1, false)
	d.Advance()
	checkDone(t, d, b2, false)
	checkDone(t, d, b1, true) // c, later on stream 1, completes
	checkDone(t, d, c1, true)
	checkDone(t, d, z1, false)
	d.Advance() // c's free_completed
	checkDone(t, d, b2, false)
	d.Advance()
	checkDone(t, d, b2, true)
	checkDone(t, d, z1, false)
	if _, err := d.EventDone(b2); err == nil {
		t.Error("a finished event can be asked for again")
	}
	if err := d.WaitEvent(z1); err != nil {
		t.Error(err)
	}
	if n := len(d.fences.open) + len(d.fences.byAddr); n != 0 {
		t.Errorf("%d finished events are kept", n)
	}
}

// A later use of an address must not be mistaken for an earlier block there.
func TestAddressReused(t *testing.T) {
	d := newDriver(row(alloc.ActionFreeCompleted, 0xb, 8, 0), row(alloc.ActionAlloc, 0xb, 8, 0), row(alloc.ActionFreeRequested, 0xb, 8, 0), row(alloc.ActionAlloc, 0xd, 8, 0))
	checkDone(t, d, record(t, d, 1, 0xb), true)
	for range 3 {
		d.Advance()
	}
	checkDone(t, d, record(t, d, 1, 0xb), false)
}

// An event recorded after the run was looked at still counts (undeferring
// between two questions).
func TestRecordedDuringRun(t *testing.T) {
	d := newDriver(row(alloc.ActionFreeCompleted, 0xa, 8, 0), row(alloc.ActionFreeCompleted, 0xb, 8, 0))
	checkDone(t, d, record(t, d, 1, 0xa), true)
	checkDone(t, d, record(t, d, 2, 0xb), true)
}

func TestRunStopsAtOperation(t *testing.T) {
	d := newDriver(inOp(4, row(alloc.ActionFreeCompleted, 0xa, 8, 0)), inOp(5, row(alloc.ActionFreeCompleted, 0xb, 8, 0)))
	a, b := record(t, d, 1, 0xa), record(t, d, 2, 0xb)
	d.BeginOp(4)
	checkDone(t, d, b, false)
	checkDone(t, d, a, true)
	d.Advance()
	checkDone(t, d, b, false)
	d.BeginOp(5)
	checkDone(t, d, b, true)
}

func TestWaited(t *testing.T) {
	events := []Event{row(alloc.ActionFreeCompleted, 0xa, 8, 0), row(alloc.ActionFreeCompleted, 0xb, 8, 0), row(alloc.ActionFreeCompleted, 0xc, 8, 0), row(alloc.ActionOOM, 0, 8, 0)}
	d := New(Config{Events: List(events), Waited: []int{1}})
	a, b, c := record(t, d, 1, 0xa), record(t, d, 2, 0xb), record(t, d, 3, 0xc)
	checkDone(t, d, c, false)
	checkDone(t, d, b, false)
	checkDone(t, d, a, true)
	if s, e := d.Asked(); s != 0 || e != 1 {
		t.Errorf("asked in [%d, %d), want [0, 1)", s, e)
	}
	d.Advance()
	checkDone(t, d, b, false)
	if err := d.WaitEvent(b); err != nil {
		t.Error(err)
	}
}

// Completing n blocks in one run must not look at the run n times.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			events := make([]Event, n)
			for i := range events {
				events[i] = row(alloc.ActionFreeCompleted, uint64(i), 8, 0)
			}
			for b.Loop() {
				d := newDriver(events...)
				ids := make([]driver.Event, n)
				for i := range ids {
					ids[i], _ = d.RecordEvent(1, uint64(i))
				}
				for _, ev := range ids {
					if ok, _ := d.EventDone(ev); !ok {
						b.Fatal("not done")
					}
					d.Advance()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/completion")
		})
	}
}
