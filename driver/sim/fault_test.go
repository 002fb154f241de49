package sim

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
)

var errTest = errors.New("on purpose")

func TestFailNth(t *testing.T) {
	d := New(Config{})
	d.FailNth(2, errTest)
	d.FailNth(4, nil)
	seg := must[uint64](t)(d.Malloc(2*mib, 0)) // 1
	if err := d.Free(seg, 2*mib); err != errTest {
		t.Fatalf("second call: %v", err)
	}
	if d.Held() != 2*mib {
		t.Error("a failed free freed")
	}
	ok(t, d.Free(seg, 2*mib)) // 3
	if _, err := d.Malloc(2*mib, 0); err != driver.ErrOutOfMemory {
		t.Fatalf("fourth call: %v", err)
	}
	if seg2 := must[uint64](t)(d.Malloc(2*mib, 0)); seg2 != seg {
		t.Errorf("a failed malloc took addresses: %#x, not %#x", seg2, seg)
	}
	if calls := d.Calls(); calls[Malloc] != 3 || calls[Free] != 2 || calls.Total() != 5 {
		t.Errorf("calls %v", calls)
	}
}

// TestFailKind lets the second call of every kind fail.
func TestFailKind(t *testing.T) {
	d := New(Config{})
	var seg, base uint64
	var ev driver.Event
	var err error
	both := make([]driver.Physical, 2)
	steps := []struct {
		kind Kind
		call func() error
	}{
		{Malloc, func() error { seg, err = d.Malloc(2*mib, 0); return err }},
		{Free, func() error { return d.Free(seg, 2*mib) }},
		{Reserve, func() error { base, err = d.Reserve(2*mib, 0); return err }},
		{Map, func() error { return d.Map(base, 2*mib, 2*mib) }},
		{Unmap, func() error { return d.Unmap(base, 2*mib, 2*mib, 0) }},
		{Unreserve, func() error { return d.Unreserve(base, 2*mib) }},
		{RecordEvent, func() error { ev, err = d.RecordEvent(0, 0); return err }},
		{EventDone, func() error { _, err := d.EventDone(ev); return err }},
		{RecordEvent, func() error { ev, err = d.RecordEvent(0, 0); return err }},
		{WaitEvent, func() error { return d.WaitEvent(ev) }},
		{MemInfo, func() error { _, _, err := d.MemInfo(); return err }},
		{Reserve, func() error { base, err = d.Reserve(4*mib, 0); return err }},
		{CreatePhysical, func() error { return d.CreatePhysical(2*mib, both[:1]) }},
		{CreateHostPhysical, func() error { return d.CreateHostPhysical(2*mib, both[1:]) }},
		{MapPhysical, func() error { return d.MapPhysical(base, 2*mib, both) }},
		{SetAccess, func() error { return d.SetAccess(base, 4*mib) }},
		{CopyMapped, func() error { return d.CopyMapped(base, base+2*mib, 2*mib) }},
		{Synchronize, func() error { return d.Synchronize(0) }},
		{SynchronizeDevice, d.SynchronizeDevice},
		{UnmapPhysical, func() error { return d.UnmapPhysical(base, 4*mib) }},
		{ReleasePhysical, func() error { return d.ReleasePhysical(both) }},
		{Unreserve, func() error { return d.Unreserve(base, 4*mib) }},
	}
	for kind := range kinds {
		d.FailKind(kind, 2, errTest)
	}
	failed := map[Kind]int{}
	for range 3 {
		for _, s := range steps {
			if err := s.call(); err == errTest {
				failed[s.kind]++
				ok(t, s.call()) // a failed call changed nothing, so it can be repeated
			} else if err != nil {
				t.Fatalf("%v: %v", s.kind, err)
			}
		}
	}
	for kind := range kinds {
		if failed[kind] != 1 {
			t.Errorf("%v failed %d times", kind, failed[kind])
		}
	}
	if d.Held() != 0 {
		t.Errorf("held %d", d.Held())
	}
}

func TestFailAboveAndHeal(t *testing.T) {
	d := New(Config{})
	base := must[uint64](t)(d.Reserve(80*mib, 0))
	d.FailAbove(20 * mib)
	must[uint64](t)(d.Malloc(20*mib, 0))
	ok(t, d.Map(base, 20*mib, 20*mib))
	if _, err := d.Malloc(20*mib+1, 0); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("malloc: %v", err)
	}
	if err := d.Map(base+20*mib, 40*mib, 20*mib); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("map: %v", err)
	}
	d.FailNth(1, errTest)
	d.Heal()
	ok(t, d.Map(base+20*mib, 40*mib, 20*mib))
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Config{})
		d.Slow(Malloc, time.Second)
		start := time.Now()
		done := make(chan error)
		go func() { _, err := d.Malloc(2*mib, 0); done <- err }()
		synctest.Wait() // malloc is under way
		ev := must[driver.Event](t)(d.RecordEvent(0, 0))
		ok(t, d.WaitEvent(ev)) // other calls are served meanwhile
		if d.Held() != 0 || time.Since(start) != 0 {
			t.Errorf("held %d after %v", d.Held(), time.Since(start))
		}
		ok(t, <-done)
		if d.Held() != 2*mib || time.Since(start) != time.Second {
			t.Errorf("held %d after %v", d.Held(), time.Since(start))
		}
	})
}
