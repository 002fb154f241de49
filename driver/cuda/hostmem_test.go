//go:build linux

package cuda_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
)

const page = 2 * mib

// TestHostPages: what lies behind an address changes from the device's memory to the
// host's and back, and the bytes stay.
func TestHostPages(t *testing.T) {
	lib, d := newDevice(t, "FAKECUDA_MEMORY=0x2000000") // 32 MiB
	const pages = 4
	base, staging := must(d.Reserve(pages*page, 0)), must(d.Reserve(pages*page, 0))
	near := make([]driver.Physical, pages)
	check(t, d.CreatePhysical(page, near))
	mapAll := func(addr uint64, handles []driver.Physical) {
		t.Helper()
		check(t, d.MapPhysical(addr, page, handles))
		check(t, d.SetAccess(addr, pages*page))
	}
	mapAll(base, near)
	want := make([]byte, pages*page)
	for i := range want {
		want[i] = byte(rand.IntN(256))
	}
	check(t, d.CopyToDevice(base, want, 0))
	check(t, d.SynchronizeDevice())
	before := free(t, d)

	far := make([]driver.Physical, pages)
	check(t, d.CreateHostPhysical(page, far))
	if free(t, d) != before {
		t.Error("memory of the host was taken from the device")
	}
	for _, move := range []struct{ from, to []driver.Physical }{{near, far}, {far, near}} {
		mapAll(staging, move.to)
		check(t, d.CopyMapped(staging, base, pages*page))
		check(t, d.UnmapPhysical(base, pages*page))
		check(t, d.UnmapPhysical(staging, pages*page))
		mapAll(base, move.to)
		got := make([]byte, len(want))
		check(t, d.CopyToHost(got, base, 0))
		check(t, d.Synchronize(0))
		if !bytes.Equal(got, want) {
			t.Fatal("the bytes have changed")
		}
		clear(want[:page])
		check(t, d.Fill(base, 0, page, 0)) // the device writes there, too
	}
	check(t, d.UnmapPhysical(base, pages*page))
	check(t, errors.Join(d.ReleasePhysical(near), d.ReleasePhysical(far), d.Unreserve(base, pages*page), d.Unreserve(staging, pages*page)))
	if lib.Count("handles") != 0 || free(t, d) != before+pages*page {
		t.Errorf("%d handles, %d bytes free", lib.Count("handles"), free(t, d))
	}
}

// TestHostPlaces: the node beside the device comes first, then the rest of the host.
func TestHostPlaces(t *testing.T) {
	handles := make([]driver.Physical, 4)
	for _, tt := range []struct {
		name     string
		settings []string
		fit      int // pages
	}{
		{"node and rest", []string{"FAKECUDA_HOST_MEMORY=0x800000"}, 4},
		{"no nodes", []string{"FAKECUDA_HOST_MEMORY=0x800000", "FAKECUDA_NUMA=0"}, 4},
		{"too little", []string{"FAKECUDA_HOST_MEMORY=0x600000"}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lib, d := newDevice(t, tt.settings...)
			check(t, d.CreateHostPhysical(page, handles[:tt.fit]))
			err := d.CreateHostPhysical(page, make([]driver.Physical, 1))
			if !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("more than the host has: %v", err)
			}
			check(t, d.ReleasePhysical(handles[:tt.fit]))
			if err := d.CreateHostPhysical(page, make([]driver.Physical, tt.fit+1)); !errors.Is(err, driver.ErrOutOfMemory) || lib.Count("handles") != 0 {
				t.Errorf("all or none: %v, %d handles", err, lib.Count("handles"))
			}
		})
	}
	t.Run("granularity", func(t *testing.T) {
		_, d := newDevice(t)
		if err := d.CreateHostPhysical(mib, handles); err == nil || !strings.Contains(err.Error(), "no multiple of the 2097152") {
			t.Errorf("half a page: %v", err)
		}
	})
	for _, setting := range []string{"FAKECUDA_HOST_HANDLES=0", "FAKECUDA_VIRTUAL=0"} {
		t.Run(setting, func(t *testing.T) {
			_, d := newDevice(t, setting)
			for range 2 {
				if err := d.CreateHostPhysical(page, handles); err == nil || !strings.Contains(err.Error(), "GPU 0 (Stand-in GPU) cannot map memory") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// TestHostCallsFail: whichever call fails, nothing is left behind, and the next try
// works.
func TestHostCallsFail(t *testing.T) {
	lib, d := newDevice(t)
	base := must(d.Reserve(2*page, 0))
	before := lib.Calls()
	check(t, useHostPages(d, base))
	calls := lib.Calls() - before
	check(t, d.Unreserve(base, 2*page))
	for _, fault := range []int{2, 999} {
		madeUpFor := 0
		for n := 1; n <= calls; n++ {
			lib, d := newDevice(t)
			base := must(d.Reserve(2*page, 0))
			lib.Fail("", n, fault)
			failed := useHostPages(d, base)
			lib.Heal()
			if failed == nil {
				madeUpFor++
			} else if code(failed) != fault {
				t.Errorf("call %d fails with %d: %v", n, fault, failed)
			}
			check(t, useHostPages(d, base))
			check(t, d.Unreserve(base, 2*page))
		}
		// The node's number, its granularity and its memory, and the granularity of the rest.
		if madeUpFor != 4 {
			t.Errorf("%d of %d failures with %d had no effect, want 4", madeUpFor, calls, fault)
		}
	}
}

// useHostPages makes, maps, fills, copies and gives back a page of each kind.
func useHostPages(d *cuda.Device, base uint64) (err error) {
	var near, far [1]driver.Physical
	do := func(f func() error) {
		if err == nil {
			err = f()
		}
	}
	// What was done is undone, whatever fails: a fault strikes once.
	undo := func(f func() error) {
		if e := f(); e != nil {
			err = errors.Join(err, e, f())
		}
	}
	do(func() error { return d.CreatePhysical(page, near[:]) })
	if err != nil {
		return err
	}
	defer undo(func() error { return d.ReleasePhysical(near[:]) })
	do(func() error { return d.CreateHostPhysical(page, far[:]) })
	if err != nil {
		return err
	}
	defer undo(func() error { return d.ReleasePhysical(far[:]) })
	do(func() error { return d.MapPhysical(base, page, []driver.Physical{near[0], far[0]}) })
	if err != nil {
		return err
	}
	defer undo(func() error { return d.UnmapPhysical(base, 2*page) })
	do(func() error { return d.SetAccess(base, 2*page) })
	do(func() error { return d.CopyMapped(base+page, base, page) })
	do(d.SynchronizeDevice)
	return err
}

// TestCopyMapped: it waits for nothing but itself, and refuses what is not mapped.
func TestCopyMapped(t *testing.T) {
	lib, d := newDevice(t)
	a, b := must(d.Malloc(page, 0)), must(d.Malloc(page, 0))
	s := must(d.NewStream())
	lib.SetLazy(true)
	check(t, d.Fill(a, 1, page, s))
	check(t, d.Fill(b, 2, page, 0))
	check(t, d.CopyMapped(b, a, page))
	lib.SetLazy(false)
	check(t, d.SynchronizeDevice())
	got := make([]byte, 1)
	check(t, d.CopyToHost(got, b, 0))
	if got[0] != 2 {
		t.Errorf("a copy waited for the work of other streams: %d", got[0])
	}
	if err := d.CopyMapped(1<<40, a, page); code(err) != 1 {
		t.Errorf("to nowhere: %v", err)
	}
	check(t, d.CopyMapped(1, 1, 0))
	check(t, errors.Join(d.Free(a, page), d.Free(b, page), d.CloseStream(s)))
}

// TestSynchronizeDeviceCapturing: a capture that goes on is told and left whole.
func TestSynchronizeDeviceCapturing(t *testing.T) {
	_, d := newDevice(t)
	defer must(d.Bind())()
	a, b := must(d.NewStream()), must(d.NewStream())
	check(t, d.BeginCapture(a, cuda.CaptureThreadLocal))
	check(t, d.BeginCapture(b, cuda.CaptureThreadLocal))
	if err := d.BeginCapture(a, cuda.CaptureThreadLocal); err == nil {
		t.Error("a stream is captured twice")
	}
	for _, s := range []uint64{a, b} {
		if err := d.SynchronizeDevice(); !errors.Is(err, driver.ErrCapturing) || code(err) != 0 {
			t.Errorf("during a capture: %v", err)
		}
		check(t, must(d.EndCapture(s)).Close())
	}
	check(t, d.SynchronizeDevice())
	check(t, errors.Join(d.CloseStream(a), d.CloseStream(b)))
}
