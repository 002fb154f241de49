package sim

import (
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
)

func TestImmediateEvents(t *testing.T) {
	d := New(Config{})
	ev := must[driver.Event](t)(d.RecordEvent(1, 0))
	if !must[bool](t)(d.EventDone(ev)) {
		t.Error("not done at once")
	}
}

func TestManualEvents(t *testing.T) {
	d := New(Config{Events: Manual})
	seg := must[uint64](t)(d.Malloc(2*mib, 0))
	base := must[uint64](t)(d.Reserve(2*mib, 0))
	ok(t, d.Map(base, 2*mib, 2*mib))
	for _, tt := range []struct {
		name string
		act  func(ev []driver.Event) error
		want [4]bool // events 0, 1, 2 on stream 5, event 3 on stream 6
	}{
		{"nothing", func([]driver.Event) error { return nil }, [4]bool{}},
		{"complete stream", func([]driver.Event) error { d.Complete(5); return nil }, [4]bool{true, true, true, false}},
		{"complete unknown stream", func([]driver.Event) error { d.Complete(99); return nil }, [4]bool{}},
		{"complete all", func([]driver.Event) error { d.CompleteAll(); return nil }, [4]bool{true, true, true, true}},
		{"complete through", func(ev []driver.Event) error { return d.CompleteThrough(ev[1]) }, [4]bool{true, true, false, false}},
		{"never backwards", func(ev []driver.Event) error {
			_ = d.CompleteThrough(ev[1])
			return d.CompleteThrough(ev[0])
		}, [4]bool{true, true, false, false}},
		{"unmap waits for its stream", func([]driver.Event) error { return d.Unmap(base, 2*mib, 2*mib, 5) }, [4]bool{true, true, true, false}},
		{"failed free", func([]driver.Event) error { _ = d.Free(seg, 1); return nil }, [4]bool{}},
		{"free waits for the device", func([]driver.Event) error { return d.Free(seg, 2*mib) }, [4]bool{true, true, true, true}},
	} {
		var ev []driver.Event
		for _, stream := range []uint64{5, 5, 5, 6} {
			ev = append(ev, must[driver.Event](t)(d.RecordEvent(stream, 0)))
		}
		ok(t, tt.act(ev))
		for i := len(ev) - 1; i >= 0; i-- { // asking does not complete anything
			if done := must[bool](t)(d.EventDone(ev[i])); done != tt.want[i] {
				t.Errorf("%s: event %d done: %v", tt.name, i, done)
			}
		}
		d.CompleteAll()
	}
}

func TestWaitEvent(t *testing.T) {
	d := New(Config{Events: Manual})
	a := must[driver.Event](t)(d.RecordEvent(5, 0))
	b := must[driver.Event](t)(d.RecordEvent(5, 0))
	c := must[driver.Event](t)(d.RecordEvent(5, 0))
	ok(t, d.WaitEvent(b))
	if !must[bool](t)(d.EventDone(a)) {
		t.Error("an event before the one waited for is not done")
	}
	if must[bool](t)(d.EventDone(c)) {
		t.Error("an event after the one waited for is done")
	}
}

func TestEventsDoNotAllocate(t *testing.T) {
	d := New(Config{Events: Manual})
	var pending [8]driver.Event
	round := func() {
		for i := range pending {
			pending[i], _ = d.RecordEvent(uint64(i%3), 0)
		}
		d.CompleteAll()
		for _, ev := range pending {
			if done, err := d.EventDone(ev); !done || err != nil {
				t.Fatal(done, err)
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

func BenchmarkEvent(b *testing.B) {
	d := New(Config{})
	for b.Loop() {
		ev, _ := d.RecordEvent(1, 0)
		_, _ = d.EventDone(ev)
	}
}
