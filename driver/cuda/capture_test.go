//go:build linux

package cuda_test

import (
	"errors"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
)

// TestCapture: what an allocator does on its own account leaves a capture
// whole, on the capturing thread and on others.
func TestCapture(t *testing.T) {
	for _, mode := range []cuda.CaptureMode{cuda.CaptureGlobal, cuda.CaptureThreadLocal, cuda.CaptureRelaxed} {
		_, d := newDevice(t)
		release := must(d.Bind())
		s, other := must(d.NewStream()), must(d.NewStream())
		kept := must(d.Malloc(mib, s))
		host := must(d.AllocHost(mib))
		base := must(d.Reserve(4*mib, s))
		check(t, d.Map(base, 2*mib, 2*mib))
		old := must(d.RecordEvent(s, kept))

		check(t, d.BeginCapture(s, mode))
		if !must(d.Capturing(s)) || must(d.Capturing(other)) {
			t.Fatal("the wrong streams are captured")
		}
		check(t, d.Fill(kept, 3, mib, s)) // captured, not done
		check(t, d.CopyToHost(host, kept, s))

		allocator := func() {
			addr := must(d.Malloc(mib, s))
			check(t, d.Free(addr, mib))
			check(t, d.Map(base+2*mib, 2*mib, 2*mib))
			check(t, d.Unmap(base+2*mib, 2*mib, 2*mib, other))
			_, _, err := d.MemInfo()
			check(t, err)
			ev := must(d.RecordEvent(other, addr))
			if !must(d.EventDone(ev)) {
				t.Error("an event of a stream that is not captured is not done")
			}
			for name, err := range map[string]error{
				"Unmap": d.Unmap(base, 2*mib, 2*mib, s), "Synchronize": d.Synchronize(s),
			} {
				if !errors.Is(err, cuda.ErrCapturing) {
					t.Errorf("%s of a captured stream: %v", name, err)
				}
			}
		}
		allocator()
		done := make(chan bool)
		go func() { defer close(done); allocator() }()
		<-done
		if !must(d.EventDone(old)) {
			t.Error("an event from before the capture is not done")
		}

		g, err := d.EndCapture(s)
		if err != nil {
			t.Fatalf("mode %d: the capture was broken: %v", mode, err)
		}
		if must(d.Capturing(s)) || host[0] != 0 {
			t.Error("the capture goes on, or its work was done")
		}
		for value := range byte(3) { // a graph does the same each time
			check(t, d.Fill(kept, value, mib, s))
			check(t, g.Launch(s))
			check(t, d.Synchronize(s))
			if host[0] != 3 || host[mib-1] != 3 {
				t.Errorf("the graph left %d", host[0])
			}
		}
		check(t, d.Unmap(base, 2*mib, 2*mib, s))
		check(t, errors.Join(g.Close(), d.Unreserve(base, 4*mib), d.Free(kept, mib), d.FreeHost(host), d.CloseStream(s), d.CloseStream(other)))
		release()
	}
}

// TestBrokenCapture shows what the relaxed mode and the look at the stream
// protect from: waiting for the whole device breaks a capture.
func TestBrokenCapture(t *testing.T) {
	lib, d := newDevice(t)
	release := must(d.Bind())
	defer release()
	s := must(d.NewStream())
	check(t, d.BeginCapture(s, cuda.CaptureGlobal))
	// Another Device of the same card does not know of the capture.
	blind := must(must(cuda.Open()).Device(0))
	if err := blind.SynchronizeDevice(); code(err) != 900 || !errors.Is(err, cuda.ErrCapturing) {
		t.Errorf("got %v", err)
	}
	check(t, blind.Close())
	if !must(d.Capturing(s)) {
		t.Error("a broken capture goes on until it is ended")
	}
	if _, err := d.EndCapture(s); code(err) != 901 {
		t.Errorf("got %v", err)
	}
	if err := d.BeginCapture(0, cuda.CaptureGlobal); code(err) != 900 {
		t.Errorf("stream 0 was captured: %v", err)
	}
	// A graph that cannot be made ready leaves nothing.
	check(t, d.BeginCapture(s, cuda.CaptureRelaxed))
	lib.Fail("cuGraphInstantiateWithFlags", 1, 2)
	if _, err := d.EndCapture(s); code(err) != 2 || lib.Count("graphs") != 0 {
		t.Errorf("%v, %d graphs left", err, lib.Count("graphs"))
	}
	check(t, d.CloseStream(s))
}

// TestCloseCaptured: a stream that is being captured stays open.
func TestCloseCaptured(t *testing.T) {
	_, d := newDevice(t)
	s := must(d.NewStream())
	defer must(d.Bind())()
	check(t, d.BeginCapture(s, cuda.CaptureGlobal))
	if err := d.CloseStream(s); !errors.Is(err, driver.ErrCapturing) {
		t.Errorf("closed during a capture: %v", err)
	}
	g := must(d.EndCapture(s))
	check(t, g.Launch(s))
	check(t, d.CloseStream(s))
	if err := g.Launch(s); !errors.Is(err, cuda.ErrStreamClosed) {
		t.Errorf("a launch on a closed stream: %v", err)
	}
	if err := d.BeginCapture(s, cuda.CaptureGlobal); !errors.Is(err, cuda.ErrStreamClosed) {
		t.Errorf("a capture of a closed stream: %v", err)
	}
	check(t, g.Close())
}
