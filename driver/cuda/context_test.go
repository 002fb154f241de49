//go:build linux

package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
)

// everyMethod calls each method that visits the driver, once. Errors are the
// caller's business.
func everyMethod(d *cuda.Device) {
	s, _ := d.NewStream()
	addr, _ := d.Malloc(mib, s)
	_, _, _ = d.MemInfo()
	base, _ := d.Reserve(4*mib, s)
	_ = d.Map(base, 4*mib, 2*mib)
	_ = d.Fill(base, 1, mib, s)
	if ev, err := d.RecordEvent(s, addr); err == nil {
		_ = d.StreamWait(s, ev)
		if done, err := d.EventDone(ev); !done && err == nil {
			_ = d.WaitEvent(ev)
		}
	}
	if ev, err := d.RecordEvent(s, addr); err == nil {
		_ = d.WaitEvent(ev)
	}
	if host, err := d.AllocHost(mib); err == nil {
		_ = d.CopyToDevice(addr, host, s)
		_ = d.CopyToHost(host, addr, s)
		_ = d.FreeHost(host)
	}
	_ = d.CopyOnDevice(base, base+mib, mib, s)
	_ = d.Unmap(base, 4*mib, 2*mib, s)
	_ = d.Unreserve(base, 4*mib)
	_ = d.Free(addr, mib)
	if a, err := d.MallocAsync(mib, s); err == nil {
		_ = d.FreeAsync(a, s)
	}
	_, _ = d.PoolStats()
	_ = d.TrimPool(0)
	if a, _, err := d.AllocManaged(mib); err == nil {
		_ = d.Advise(a, mib, cuda.ReadMostly, cuda.OnDevice)
		_ = d.Prefetch(a, mib, cuda.OnHost, s)
		_ = d.Free(a, mib)
	}
	if e, err := d.NewTimingEvent(); err == nil {
		_ = e.Record(s)
		_ = e.Synchronize()
		_, _ = e.Since(e)
		_ = e.Close()
	}
	if d.BeginCapture(s, cuda.CaptureGlobal) == nil {
		_, _ = d.Capturing(s)
		if g, err := d.EndCapture(s); err == nil {
			_ = g.Launch(s)
			_ = g.Close()
		}
	}
	_ = d.SynchronizeDevice()
	_ = d.Synchronize(s)
	_ = d.CloseStream(s)
}

// TestThreadAsFound: whatever happens in a call, the thread has the context and
// the capture mode afterwards that it had before.
func TestThreadAsFound(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib := cudatest.Use(t, "FAKECUDA_DEVICES=2")
	l := must(cuda.Open())
	d, other := must(l.Device(0)), must(l.Device(1))
	asFound := func(when string, depth int) {
		t.Helper()
		if lib.ContextDepth() != depth || lib.CaptureMode() != cuda.CaptureGlobal {
			t.Fatalf("%s: %d contexts, want %d; capture mode %d", when, lib.ContextDepth(), depth, lib.CaptureMode())
		}
	}
	everyMethod(d)
	asFound("without a context", 0)

	before := lib.Calls()
	everyMethod(d)
	calls := lib.Calls() - before
	if calls < 80 {
		t.Fatalf("only %d calls", calls)
	}
	for n := 1; n <= calls; n++ {
		lib.Fail("", n, 999)
		everyMethod(d)
		lib.Heal()
		asFound(fmt.Sprintf("call %d fails", n), 0)
	}

	lib.Fail("cuThreadExchangeStreamCaptureMode", 1, 999)
	if _, _, err := d.MemInfo(); code(err) != 999 {
		t.Errorf("the capture mode cannot be set: %v", err)
	}
	asFound("the capture mode cannot be set", 0)

	release := must(other.Bind())
	asFound("bound", 1)
	everyMethod(d)
	asFound("with another device's context", 1)
	inner := must(d.Bind())
	asFound("bound twice", 2)
	before = lib.Calls()
	everyMethod(d)
	if bound := lib.Calls() - before; bound >= calls {
		t.Errorf("%d calls when bound, %d otherwise", bound, calls)
	}
	inner()
	asFound("released once", 1)
	release()
	asFound("released", 0)
}

// TestConcurrentUse is for the race detector, and for the stand-in, which
// refuses calls without a context.
func TestConcurrentUse(t *testing.T) {
	lib, d := newDevice(t)
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			stream, err := d.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			for range 100 {
				if r.IntN(4) == 0 {
					runtime.Gosched() // to another thread, perhaps
				}
				size := uint64(1 + r.IntN(mib))
				addr, err := d.Malloc(size, stream)
				if err != nil {
					t.Error(err)
					return
				}
				value := byte(r.Uint32())
				back := make([]byte, size)
				ev, err := d.RecordEvent(stream, addr)
				for _, err := range []error{
					err, d.Fill(addr, value, size, stream), d.CopyToHost(back, addr, stream), d.Synchronize(stream), d.WaitEvent(ev),
					d.Free(addr, size),
				} {
					if err != nil {
						t.Error(err)
						return
					}
				}
				if back[0] != value || back[size-1] != value {
					t.Errorf("filled with %d, read %d and %d", value, back[0], back[size-1])
				}
			}
			if err := d.CloseStream(stream); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := lib.Count("events"); n > 4 {
		t.Errorf("%d events for 4 at once", n)
	}
}

// TestReleaseTwice: releasing a second time, say once by hand and once deferred,
// must not give one visit to two callers.
func TestReleaseTwice(t *testing.T) {
	lib, d := newDevice(t)
	for range 3 {
		release := must(d.Bind())
		release()
		release()
	}
	if n := lib.ContextDepth(); n != 0 {
		t.Errorf("%d contexts are left on the thread", n)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	live := map[uint64]bool{}
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				addr, err := d.Malloc(4096, 0)
				mu.Lock()
				if err != nil || live[addr] {
					t.Errorf("address %#x, in use %v: %v", addr, live[addr], err)
				}
				live[addr] = true
				delete(live, addr)
				mu.Unlock()
				if err := d.Free(addr, 4096); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
