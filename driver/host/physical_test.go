package host_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
)

// TestPhysical: bytes stay the same while what lies behind their address changes, a handle
// is the same memory at two addresses, and both memories are counted.
func TestPhysical(t *testing.T) {
	const page = 2 << 20
	d := host.New(host.Config{Memory: 8 * page, HostMemory: 4 * page})
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() { ok(d.Close()) }()
	refused := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
	}
	held := func(device, host uint64) {
		t.Helper()
		if d.Held() != device || d.HostHeld() != host {
			t.Fatalf("%d and %d bytes held, want %d and %d", d.Held(), d.HostHeld(), device, host)
		}
	}
	addr, err := d.Reserve(64*page, 0)
	ok(err)
	main, stage := addr, addr+32*page
	dev, far := make([]driver.Physical, 2), make([]driver.Physical, 2)
	refused(d.CreatePhysical(5*page, dev), driver.ErrOutOfMemory)
	refused(d.CreateHostPhysical(3*page, far), driver.ErrOutOfMemory)
	ok(d.CreatePhysical(page, dev))
	ok(d.CreateHostPhysical(page, far))
	held(2*page, 2*page)
	ok(d.MapPhysical(main, page, dev))
	if _, err := d.Bytes(main, 1); !errors.Is(err, host.ErrMisuse) {
		t.Fatalf("access before SetAccess: %v", err)
	}
	ok(d.SetAccess(main, 2*page))
	want := bytes.Repeat([]byte("ashlar"), 2*page/6)
	ok(d.CopyToDevice(main, want, 0))
	ok(d.MapPhysical(stage, page, far))
	ok(d.SetAccess(stage, 2*page))
	ok(d.SynchronizeDevice())
	ok(d.CopyMapped(stage, main, 2*page))
	ok(d.UnmapPhysical(main, 2*page))
	ok(d.MapPhysical(main, page, far)) // at two addresses at once
	ok(d.SetAccess(main, 2*page))
	ok(d.ReleasePhysical(dev))
	held(0, 2*page)
	got := make([]byte, len(want))
	ok(d.CopyToHost(got, main, 0))
	ok(d.Synchronize(0))
	if !bytes.Equal(got, want) {
		t.Error("other bytes at the same address")
	}
	ok(d.Fill(stage, 7, 1, 0))
	ok(d.Synchronize(0))
	if b, err := d.Bytes(main, 1); err != nil || b[0] != 7 {
		t.Errorf("a handle at two addresses is not one memory: %v, %v", b, err)
	}
	refused(d.ReleasePhysical(dev), host.ErrMisuse)
	refused(d.Map(main, page, page), host.ErrMisuse)
	refused(d.Unmap(main, page, page, 0), host.ErrMisuse)
	refused(d.UnmapPhysical(main+page, 2*page), host.ErrMisuse)
	refused(d.MapPhysical(main, page, far), host.ErrMisuse)
	refused(d.Unreserve(addr, 64*page), host.ErrMisuse)
	ok(d.ReleasePhysical(far))
	ok(d.UnmapPhysical(stage, 2*page))
	held(0, 2*page)
	ok(d.UnmapPhysical(main, 2*page))
	held(0, 0)
	ok(d.CreatePhysical(page, dev)) // of what was given back
	ok(d.MapPhysical(main, page, dev))
	ok(d.SetAccess(main, 2*page))
	if b, err := d.Bytes(main, 1); err != nil || b[0] == 7 && runtime.GOOS == "linux" {
		t.Errorf("memory that was given back has its bytes still: %v, %v", b, err)
	}
}
