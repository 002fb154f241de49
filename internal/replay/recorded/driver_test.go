package recorded

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

func newDriver(events ...Event) *Driver {
	return New(Config{TotalMemory: 1 << 30, Events: List(events)})
}

func row(action alloc.Action, addr, size, stream uint64) Event {
	return Event{Action: action, Addr: addr, Size: size, Stream: stream, Op: -1}
}

func inOp(op int, e Event) Event {
	e.Op = op
	return e
}

func TestMalloc(t *testing.T) {
	d := newDriver(
		row(alloc.ActionSegmentAlloc, 0x1000, 512, 0),
		row(alloc.ActionAlloc, 0x1000, 512, 0),
		row(alloc.ActionSegmentAlloc, 0x2000, 512, 0),
	)
	if a, err := d.Malloc(512, 0); a != 0x1000 || err != nil {
		t.Fatalf("at a segment_alloc: %#x, %v", a, err)
	}
	d.Advance()
	_, err := d.Malloc(512, 0)
	if !errors.Is(err, driver.ErrOutOfMemory) {
		t.Fatalf("at an alloc: %v, want out of memory", err)
	}
	if want := "event 1: alloc addr 0x1000 size 512 stream 0"; !strings.Contains(d.Refusal(), want) {
		t.Errorf("refusal %q does not name %q", d.Refusal(), want)
	}
	d.Advance()
	if a, err := d.Malloc(512, 0); a != 0x2000 || err != nil {
		t.Fatalf("at the second segment_alloc: %#x, %v", a, err)
	}
	d.Advance()
	d.Advance() // past the end: stays there
	if _, err := d.Malloc(512, 0); !errors.Is(err, driver.ErrOutOfMemory) || d.Cursor() != 3 {
		t.Errorf("past the end: %v at %d", err, d.Cursor())
	}
	if err := d.Free(0x1000, 512); err != nil {
		t.Error(err)
	}
}

func TestOperationNumbers(t *testing.T) {
	d := newDriver(inOp(1, row(alloc.ActionSegmentAlloc, 0x1000, 512, 0)))
	d.BeginOp(0)
	if _, err := d.Malloc(512, 0); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("the next operation's segment was handed out: %v", err)
	}
	if !strings.Contains(d.Refusal(), "no further event of this operation") {
		t.Errorf("refusal: %q", d.Refusal())
	}
	d.BeginOp(1)
	if d.Refusal() != "" {
		t.Errorf("refusal survives the operation: %q", d.Refusal())
	}
	if a, err := d.Malloc(512, 0); a != 0x1000 || err != nil {
		t.Errorf("own segment: %#x, %v", a, err)
	}
}

func TestMap(t *testing.T) {
	d := newDriver(row(alloc.ActionSegmentMap, 0x1000, 4096, 7))
	for _, bad := range [][2]uint64{{0x2000, 4096}, {0x1000, 8192}} {
		if err := d.Map(bad[0], bad[1], 4096); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("map %#x: %v, want out of memory", bad, err)
		}
	}
	if err := d.Map(0x1000, 4096, 4096); err != nil {
		t.Error(err)
	}
	if err := d.Unmap(0x1000, 4096, 4096, 7); err != nil {
		t.Error(err)
	}
}

func TestReserve(t *testing.T) {
	d := newDriver(
		row(alloc.ActionSegmentMap, 0x10000, 4096, 1),
		row(alloc.ActionSegmentMap, 0x11000, 4096, 1), // inside the first reservation
		row(alloc.ActionSegmentMap, 0x50000, 4096, 2), // another stream
		row(alloc.ActionSegmentMap, 0x40000, 4096, 1),
		row(alloc.ActionSegmentMap, 0x3f000, 4096, 1), // would run into the reservation at 0x40000
		row(alloc.ActionSegmentMap, 0x10000, 4096, 1),
	)
	reserve := func(stream, want uint64) {
		t.Helper()
		got, err := d.Reserve(0x8000, stream)
		if err != nil || got != want {
			t.Fatalf("reserve for stream %d: %#x, %v; want %#x", stream, got, err, want)
		}
	}
	reserve(1, 0x10000)
	reserve(1, 0x40000)
	reserve(2, 0x50000)
	if _, err := d.Reserve(0x8000, 1); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("third reservation for stream 1: %v, want out of memory", err)
	}
	if _, err := d.Reserve(0x8000, 9); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("reservation for an unknown stream: %v, want out of memory", err)
	}
	for range 5 {
		d.Advance()
	}
	if err := d.Unreserve(0x10000, 0x8000); err != nil {
		t.Fatal(err)
	}
	reserve(1, 0x10000)
	if err := d.Unreserve(0x20000, 0x8000); err == nil {
		t.Error("gave back what was never reserved")
	}
}

// What was reserved before the first event can be given back, and until then
// nothing else is reserved there.
func TestAdoptRange(t *testing.T) {
	d := newDriver(row(alloc.ActionSegmentMap, 0x12000, 4096, 1), row(alloc.ActionSegmentMap, 0x40000, 4096, 1))
	if err := errors.Join(d.Adopt(0x1000, 0x1000), d.AdoptRange(0x10000, 0x8000), d.AdoptMapped(0x11000, 0x1000, 0x1000), d.AdoptRange(0x14000, 0x8000)); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Reserve(0x8000, 1); err != nil || got != 0x40000 {
		t.Errorf("reserved at %#x, %v; want 0x40000", got, err)
	}
	if err := d.Unreserve(0x14000, 0x8000); err == nil {
		t.Error("gave back a range that overlaps an adopted one")
	}
	if err := d.Unreserve(0x10000, 0x8000); err != nil {
		t.Error(err)
	}
	if got, err := d.Reserve(0x8000, 1); err != nil || got != 0x12000 {
		t.Errorf("reserved at %#x, %v; want 0x12000", got, err)
	}
}

func TestMemInfo(t *testing.T) {
	d := newDriver(row(alloc.ActionOOM, 111, 512, 0), row(alloc.ActionAlloc, 1, 1, 0), row(alloc.ActionOOM, 222, 512, 0), row(alloc.ActionAlloc, 1, 1, 0))
	for i, want := range []uint64{111, 222, 222, 0, 0} {
		free, total, err := d.MemInfo()
		if free != want || total != d.TotalMemory() || err != nil {
			t.Errorf("at event %d: free %d total %d, %v; want free %d", i, free, total, err, want)
		}
		d.Advance()
	}
}

func TestSequence(t *testing.T) {
	d := newDriver(
		row(alloc.ActionFreeCompleted, 3, 0, 0), row(alloc.ActionFreeCompleted, 1, 0, 0), row(alloc.ActionFreeCompleted, 2, 0, 0),
		row(alloc.ActionAlloc, 5, 0, 0), row(alloc.ActionFreeCompleted, 4, 0, 0),
	)
	addrs := []uint64{1, 5, 4, 2, 3}
	d.Sequence(addrs)
	if want := []uint64{3, 1, 2, 5, 4}; !slices.Equal(addrs, want) {
		t.Errorf("got %v, want %v", addrs, want)
	}
	if !d.Passed(0, 2) || d.Passed(0, 4) {
		t.Error("Passed: 2 returns now, 4 does not")
	}
}
