//go:build linux

package driver_test

import (
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/settings"
)

const mib = 1 << 20

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// everywhere runs a test on each kind of device that holds bytes. Work on the
// stand-in for a GPU waits until somebody waits for it.
func everywhere(t *testing.T, f func(*testing.T, driver.Copier)) {
	t.Run("host", func(t *testing.T) {
		d := host.New(host.Config{Memory: 512 * mib})
		t.Cleanup(func() { check(t, d.Close()) })
		f(t, d)
	})
	t.Run("cuda", func(t *testing.T) {
		f(t, cudatest.Device(t, cudatest.Use(t, "FAKECUDA_LAZY=1", "FAKECUDA_MEMORY=536870912", "FAKECUDA_CONTEXT=0")))
	})
}

// TestClosedStream: a closed stream is one whose work is done.
func TestClosedStream(t *testing.T) {
	everywhere(t, func(t *testing.T, d driver.Copier) {
		s := must(d.NewStream())
		addr := must(d.Malloc(2*mib, s))
		buf := must(d.AllocHost(mib))
		check(t, d.Fill(addr, 7, mib, s))
		check(t, d.CopyToHost(buf, addr, s))
		check(t, d.CloseStream(s))
		if buf[0] != 7 || buf[mib-1] != 7 {
			t.Error("the stream was closed before its work was done")
		}
		ev := must(d.RecordEvent(s, addr))
		check(t, d.StreamWait(0, ev))
		if done, err := d.EventDone(ev); !done || err != nil {
			t.Errorf("an event on a closed stream: %v, %v", done, err)
		}
		check(t, d.WaitEvent(must(d.RecordEvent(s, addr))))
		other := must(d.RecordEvent(0, addr))
		check(t, d.StreamWait(s, other))
		check(t, d.WaitEvent(other))
		check(t, d.Synchronize(s))
		base := must(d.Reserve(4*mib, s))
		check(t, d.Map(base, 4*mib, 2*mib))
		check(t, d.Unmap(base, 4*mib, 2*mib, s))
		check(t, d.Unreserve(base, 4*mib))

		for name, err := range map[string]error{
			"fill":           d.Fill(addr, 1, mib, s),
			"copy to":        d.CopyToDevice(addr, buf, s),
			"copy from":      d.CopyToHost(buf, addr, s),
			"copy on":        d.CopyOnDevice(addr, addr+mib, mib, s),
			"closing again":  d.CloseStream(s),
			"closing 0":      d.CloseStream(0),
			"another stream": d.Synchronize(0xdead0),
		} {
			if err == nil {
				t.Errorf("%s was accepted", name)
			}
		}
		// The next stream works, whether it has the same name or not.
		s = must(d.NewStream())
		check(t, d.Fill(addr, 9, mib, s))
		check(t, d.CopyToHost(buf, addr, s))
		check(t, d.CloseStream(s))
		if buf[0] != 9 {
			t.Error("the next stream did not do its work")
		}
		check(t, d.FreeHost(buf))
		check(t, d.Free(addr, 2*mib))
	})
}

// TestAllocatorOutlivesStreams: the allocator may hold memory that was used on a
// stream which is closed by now, allocated, cached and under pressure.
func TestAllocatorOutlivesStreams(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True"} {
		t.Run(conf, func(t *testing.T) {
			everywhere(t, func(t *testing.T, d driver.Copier) {
				a := alloc.New(d, alloc.WithSettings(must(settings.Parse(conf))))
				s := must(d.NewStream())
				shared := must(a.Malloc(30*mib, 0))
				own := must(a.Malloc(200*mib, s))
				check(t, d.Fill(shared, 1, mib, s))
				check(t, a.RecordStream(shared, s))
				check(t, d.CloseStream(s))
				check(t, a.Free(shared))
				check(t, a.Free(own))
				// More than what the closed stream's cache leaves.
				next := must(a.Malloc(400*mib, 0))
				check(t, a.Free(next))
				check(t, a.EmptyCache())
				if u := a.Usage(); u.Reserved != 0 || u.Active != 0 {
					t.Errorf("left: %+v", u)
				}
			})
		})
	}
}

// TestNothing: no bytes are no work, wherever they are.
func TestNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, d driver.Copier) {
		check(t, d.CopyToDevice(0, nil, 0))
		check(t, d.CopyToHost(nil, 0, 0))
		check(t, d.CopyOnDevice(0, 0, 0, 0))
		check(t, d.Fill(0, 1, 0, 0))
	})
}
