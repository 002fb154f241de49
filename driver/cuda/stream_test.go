//go:build linux

package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
)

func TestEvents(t *testing.T) {
	lib, d := newDevice(t, "FAKECUDA_LAZY=1")
	s := must(d.NewStream())
	first := must(d.RecordEvent(s, 0))
	second := must(d.RecordEvent(s, 0))
	for _, ev := range []driver.Event{first, second} {
		if done := must(d.EventDone(ev)); done {
			t.Errorf("event %#x is done before its stream", uint64(ev))
		}
	}
	check(t, d.WaitEvent(first))
	if done := must(d.EventDone(second)); done {
		t.Error("waiting for the first event finished the second one")
	}
	lib.Run()
	if done := must(d.EventDone(second)); !done {
		t.Error("not done though the stream is")
	}
	// Both are gone, and their places are used again under other names.
	third := must(d.RecordEvent(s, 0))
	for _, ev := range []driver.Event{first, second, 0, 1 << 40} {
		_, err := d.EventDone(ev)
		for _, err := range []error{err, d.WaitEvent(ev), d.StreamWait(s, ev)} {
			if err == nil || !strings.Contains(err.Error(), "not in use") {
				t.Errorf("an old name, %#x, was accepted: %v", uint64(ev), err)
			}
		}
	}
	check(t, d.WaitEvent(third))
	if n := lib.Count("events"); n != 2 {
		t.Errorf("%d events made for two at once", n)
	}
	if _, err := d.RecordEvent(0xdead, 0); code(err) != 400 {
		t.Errorf("a stream that is none: %v", err)
	}
	must(d.RecordEvent(s, 0))
	must(d.RecordEvent(s, 0))
	if n := lib.Count("events"); n != 2 {
		t.Errorf("%d events: one was lost by the record that failed", n)
	}
	check(t, d.CloseStream(s))
	if err := d.CloseStream(s); !errors.Is(err, cuda.ErrStreamClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if err := d.CloseStream(0xdead); code(err) != 400 {
		t.Errorf("a stream that is none: %v", err)
	}
	if err := d.CloseStream(0); err == nil {
		t.Error("stream 0 was closed")
	}
}

// TestStreamWait: an event orders the work of two streams.
func TestStreamWait(t *testing.T) {
	_, d := newDevice(t, "FAKECUDA_LAZY=1")
	a, b := must(d.NewStream()), must(d.NewStream())
	addr := must(d.Malloc(mib, a))
	host := must(d.AllocHost(mib))
	check(t, d.Fill(addr, 1, mib, a))
	ev := must(d.RecordEvent(a, addr))
	check(t, d.StreamWait(b, ev))
	check(t, d.CopyToHost(host, addr, b))
	check(t, d.Fill(addr, 2, mib, a)) // after the event: b may see either
	if host[0] != 0 {
		t.Error("the copy ran before anybody waited")
	}
	check(t, d.Synchronize(b))
	if host[0] != 1 || host[mib-1] != 1 {
		t.Errorf("the copy saw %d", host[0])
	}
	check(t, d.SynchronizeDevice())
	check(t, d.WaitEvent(ev))
	check(t, d.Free(addr, mib))
	check(t, d.FreeHost(host))
	check(t, errors.Join(d.CloseStream(a), d.CloseStream(b)))
}

// TestUnmapWaits: work that is queued on the stream is done before its memory
// goes.
func TestUnmapWaits(t *testing.T) {
	_, d := newDevice(t, "FAKECUDA_LAZY=1")
	s := must(d.NewStream())
	base := must(d.Reserve(4*mib, s))
	check(t, d.Map(base, 4*mib, 2*mib))
	check(t, d.Fill(base, 1, 4*mib, s))
	check(t, d.Unmap(base, 4*mib, 2*mib, s))
	check(t, d.Synchronize(s))
	check(t, d.Unreserve(base, 4*mib))
	check(t, d.CloseStream(s))
}

// TestUnmapTooEarly shows that TestUnmapWaits means something: work on
// unmapped memory breaks the context, on the stand-in as on a GPU.
func TestUnmapTooEarly(t *testing.T) {
	cudatest.Use(t, "FAKECUDA_LAZY=1")
	d := must(must(cuda.Open()).Device(0))
	s, other := must(d.NewStream()), must(d.NewStream())
	base := must(d.Reserve(4*mib, s))
	check(t, d.Map(base, 4*mib, 2*mib))
	check(t, d.Fill(base, 1, 4*mib, s))
	check(t, d.Unmap(base, 4*mib, 2*mib, other))
	if err := d.Synchronize(s); code(err) != 700 {
		t.Errorf("work on unmapped memory went unnoticed: %v", err)
	}
	if _, err := d.Malloc(1, 0); code(err) != 700 {
		t.Errorf("the context works again: %v", err)
	}
}

func TestTimingEvents(t *testing.T) {
	_, d := newDevice(t)
	a, b := must(d.NewTimingEvent()), must(d.NewTimingEvent())
	addr := must(d.Malloc(64*mib, 0))
	check(t, a.Record(0))
	if _, err := b.Since(a); code(err) != 400 {
		t.Errorf("time of an event that was not recorded: %v", err)
	}
	check(t, d.Fill(addr, 1, 64*mib, 0))
	check(t, b.Record(0))
	check(t, b.Synchronize())
	if took := must(b.Since(a)); took <= 0 {
		t.Errorf("filling 64 MiB took %v", took)
	}
	check(t, d.Free(addr, 64*mib))
	check(t, errors.Join(a.Close(), b.Close()))
	if err := a.Close(); code(err) != 400 {
		t.Errorf("closed twice: %v", err)
	}
}

func TestModules(t *testing.T) {
	lib, d := newDevice(t)
	if _, err := d.LoadPTX("this is no PTX"); code(err) != 218 || !strings.Contains(err.Error(), "Missing .version directive") {
		t.Errorf("the compiler's words are missing: %v", err)
	}
	if _, err := d.LoadPTX("a\x00b"); err == nil || code(err) != 0 {
		t.Errorf("a zero byte: %v", err)
	}
	m := must(d.LoadPTX(".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry ashlar_spin(.param .u64 n) { ret; }"))
	if _, err := m.Function("nothing"); code(err) != 500 || !strings.Contains(err.Error(), `kernel "nothing"`) {
		t.Errorf("got %v", err)
	}
	f := must(m.Function("ashlar_spin"))
	check(t, f.Launch(0, cuda.Dim{}, cuda.Dim{X: 32}, 1000))
	if err := f.Launch(0, cuda.Dim{}, cuda.Dim{X: 2048}, 1000); code(err) != 1 {
		t.Errorf("a block too large: %v", err)
	}
	if err := f.Launch(0, cuda.Dim{}, cuda.Dim{}, make([]uint64, 17)...); err == nil {
		t.Error("17 arguments")
	}
	check(t, m.Close())
	if lib.Count("modules") != 0 {
		t.Error("a module is left")
	}
}
