package host_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
)

const mib = 1 << 20

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, memory uint64) *host.Device {
	d := host.New(host.Config{Memory: memory})
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

// both returns 4 MiB in a plain segment and in a reservation.
func both(t *testing.T, d *host.Device) map[string]uint64 {
	plain := must[uint64](t)(d.Malloc(4*mib, 0))
	base := must[uint64](t)(d.Reserve(64*mib, 0))
	check(t, d.Map(base+20*mib, 4*mib, 2*mib))
	return map[string]uint64{"plain": plain, "mapped": base + 20*mib}
}

func TestBytesArrive(t *testing.T) {
	d := open(t, 64*mib)
	for name, addr := range both(t, d) {
		t.Run(name, func(t *testing.T) {
			data := must[[]byte](t)(d.AllocHost(mib))
			r := rand.New(rand.NewPCG(1, 2))
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			back := must[[]byte](t)(d.AllocHost(mib))
			check(t, d.Fill(addr, 0xAB, 4*mib, 0))
			check(t, d.CopyToDevice(addr+7, data, 0))
			check(t, d.CopyOnDevice(addr+3*mib, addr+7, mib, 0))
			check(t, d.Fill(addr+7, 0, 100, 0))
			check(t, d.CopyToHost(back, addr+3*mib, 0))
			check(t, d.Synchronize(0))
			if !bytes.Equal(data, back) {
				t.Error("other bytes came back")
			}
			mem := must[[]byte](t)(d.Bytes(addr, 4*mib))
			if mem[6] != 0xAB || mem[7] != 0 || mem[106] != 0 || mem[107] != data[100] || mem[7+mib] != 0xAB {
				t.Error("a fill or a copy went beyond its range")
			}
			check(t, d.FreeHost(data))
			check(t, d.FreeHost(back))
		})
	}
}

// Addresses are aligned as those of a GPU are, and memory that was unmapped
// has lost what was in it.
func TestPages(t *testing.T) {
	d := open(t, 64*mib)
	base := must[uint64](t)(d.Reserve(20*mib, 0))
	plain := must[uint64](t)(d.Malloc(1000, 0))
	if base%(2*mib) != 0 || plain%(2*mib) != 0 {
		t.Errorf("addresses %#x and %#x are not multiples of 2 MiB", base, plain)
	}
	for range 2 {
		check(t, d.Map(base, 2*mib, 2*mib))
		mem := must[[]byte](t)(d.Bytes(base, 2*mib))
		if bytes.ContainsFunc(mem, func(r rune) bool { return r != 0 }) {
			t.Error("fresh memory is not empty")
		}
		check(t, d.Fill(base, 1, 2*mib, 0))
		check(t, d.Unmap(base, 2*mib, 2*mib, 0))
	}
	check(t, d.Unreserve(base, 20*mib))
}

func TestCapacity(t *testing.T) {
	d := open(t, 10*mib)
	base := must[uint64](t)(d.Reserve(100*mib, 0))
	a := must[uint64](t)(d.Malloc(5*mib, 0)) // takes 6
	for name, err := range map[string]error{
		"malloc":            second(d.Malloc(4*mib+1, 0)),
		"malloc of too big": second(d.Malloc(1<<63, 0)),
		"map":               d.Map(base, 6*mib, 2*mib),
		"host":              second(d.AllocHost(1 << 40)),
	} {
		if !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%s: %v, want out of memory", name, err)
		}
	}
	check(t, d.Map(base, 4*mib, 2*mib))
	if free, total, err := d.MemInfo(); free != 0 || total != 10*mib || err != nil {
		t.Errorf("MemInfo = %d, %d, %v", free, total, err)
	}
	check(t, d.Free(a, 5*mib))
	check(t, d.Unmap(base+2*mib, 2*mib, 2*mib, 0))
	if d.Held() != 2*mib {
		t.Errorf("%d bytes held", d.Held())
	}
}

func second[T any](_ T, err error) error { return err }

func TestMisuse(t *testing.T) {
	d := open(t, 64*mib)
	addrs := both(t, d)
	plain, mapped := addrs["plain"], addrs["mapped"]
	ev := must[driver.Event](t)(d.RecordEvent(0, 0))
	check(t, d.WaitEvent(ev))
	closed := must[uint64](t)(d.NewStream())
	check(t, d.CloseStream(closed))
	buf := make([]byte, 100)
	for name, err := range map[string]error{
		"malloc 0":               second(d.Malloc(0, 0)),
		"free inside":            d.Free(plain+mib, 3*mib),
		"free another size":      d.Free(plain, 2*mib),
		"free a reservation":     d.Free(mapped-20*mib, 64*mib),
		"unreserve mapped":       d.Unreserve(mapped-20*mib, 64*mib),
		"unreserve a segment":    d.Unreserve(plain, 4*mib),
		"reserve part of a page": second(d.Reserve(mib, 0)),
		"map twice":              d.Map(mapped-2*mib, 4*mib, 2*mib),
		"map beyond":             d.Map(mapped+40*mib, 8*mib, 2*mib),
		"map a segment":          d.Map(plain, 2*mib, 2*mib),
		"granule":                d.Map(mapped+4*mib, 3*mib, 3*mib),
		"half a granule":         d.Map(mapped+4*mib, 2*mib, 4*mib),
		"unmap unmapped":         d.Unmap(mapped-2*mib, 4*mib, 2*mib, 0),
		"copy beyond":            d.CopyToDevice(plain+4*mib-50, buf, 0),
		"copy from unmapped":     d.CopyToHost(buf, mapped+4*mib-50, 0),
		"copy from nowhere":      d.CopyOnDevice(plain, 4096, 10, 0),
		"copy on no stream":      d.CopyToDevice(plain, buf, 77),
		"fill on a closed one":   d.Fill(plain, 1, 10, closed),
		"event on no stream":     second(d.RecordEvent(77, 0)),
		"event asked for twice":  d.WaitEvent(ev),
		"event that is gone":     second(d.EventDone(ev)),
		"waiting for one":        d.StreamWait(0, ev),
		"closing stream 0":       d.CloseStream(0),
		"closing twice":          d.CloseStream(closed),
		"synchronize":            d.Synchronize(77),
		"unmap for no stream":    d.Unmap(mapped, 2*mib, 2*mib, 77),
		"slow":                   d.Slow(77, 0, 0),
		"host memory of others":  d.FreeHost(buf),
		"no host memory":         second(d.AllocHost(0)),
	} {
		if !errors.Is(err, host.ErrMisuse) {
			t.Errorf("%s: %v, want misuse", name, err)
		}
	}
	check(t, d.Synchronize(0))
}

// gate queues work on a stream that waits until the gate is opened.
func gate(t *testing.T, d *host.Device, stream uint64) (open func()) {
	c := make(chan struct{})
	check(t, d.Launch(stream, func() error {
		<-c
		return nil
	}))
	return func() { close(c) }
}

// Work that comes to memory after it was unmapped fails, and only that work.
func TestFault(t *testing.T) {
	d := open(t, 64*mib)
	addr := both(t, d)["mapped"]
	s := must[uint64](t)(d.NewStream())
	opens := gate(t, d, s)
	check(t, d.Fill(addr+2*mib, 1, 10, s))
	check(t, d.Fill(addr, 2, 10, s))
	check(t, d.Unmap(addr+2*mib, 2*mib, 2*mib, 0)) // waits for stream 0, which does nothing
	opens()
	err := d.Synchronize(s)
	var fault *host.FaultError
	if !errors.As(err, &fault) || fault.Addr != addr+2*mib || fault.Stream != s {
		t.Fatalf("got %v, want a fault at %#x", err, addr+2*mib)
	}
	check(t, d.Synchronize(s)) // reported once
	if mem := must[[]byte](t)(d.Bytes(addr, 1)); mem[0] != 2 {
		t.Error("the stream did not go on after the fault")
	}
}

// Free waits for all streams, Unmap for its own.
func TestGivingBackWaits(t *testing.T) {
	for _, plain := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := host.New(host.Config{Memory: 64 * mib})
			defer func() { check(t, d.Close()) }()
			s := must[uint64](t)(d.NewStream())
			addrs := both(t, d)
			opens := gate(t, d, s)
			done := false
			go func() {
				var err error
				if plain {
					err = d.Free(addrs["plain"], 4*mib)
				} else {
					err = d.Unmap(addrs["mapped"], 4*mib, 2*mib, s)
				}
				if err != nil {
					t.Error(err)
				}
				done = true
			}()
			synctest.Wait()
			if done {
				t.Error("did not wait for the work of the stream")
			}
			// New work for the memory is refused from the call on.
			for name, addr := range addrs {
				if err := d.Fill(addr, 1, 1, 0); (err != nil) != (plain == (name == "plain")) {
					t.Errorf("fill of %s memory: %v", name, err)
				}
			}
			opens()
			synctest.Wait()
			if !done {
				t.Error("waits for more than the work")
			}
		})
	}
}

// Two streams are ordered by an event and by nothing else.
func TestOrder(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := host.New(host.Config{Memory: 64 * mib})
			defer func() { check(t, d.Close()) }()
			addr := must[uint64](t)(d.Malloc(4*mib, 0))
			s := must[uint64](t)(d.NewStream())
			check(t, d.Slow(0, time.Millisecond, time.Second))
			check(t, d.Fill(addr, 7, 4*mib, 0))
			ev := must[driver.Event](t)(d.RecordEvent(0, addr))
			if ordered {
				check(t, d.StreamWait(s, ev))
			}
			got := make([]byte, 1)
			start := time.Now()
			check(t, d.CopyToHost(got, addr, s))
			if d := time.Since(start); d != 0 {
				t.Errorf("queueing took %v", d)
			}
			check(t, d.Synchronize(s))
			want, took := byte(0), time.Duration(0)
			if ordered {
				want, took = 7, 4*time.Second+time.Millisecond
			}
			if got[0] != want || time.Since(start) != took {
				t.Errorf("ordered %v: read %d after %v, want %d after %v", ordered, got[0], time.Since(start), want, took)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := host.New(host.Config{Memory: 64 * mib})
		defer func() { check(t, d.Close()) }()
		opens := gate(t, d, 0)
		first := must[driver.Event](t)(d.RecordEvent(0, 0))
		second := must[driver.Event](t)(d.RecordEvent(0, 0))
		synctest.Wait()
		for _, ev := range []driver.Event{first, second} {
			if done, err := d.EventDone(ev); done || err != nil {
				t.Errorf("event %d: %v, %v before its work is done", ev, done, err)
			}
		}
		// A stream may wait for an event that is asked for, and gone, before it does.
		s := must[uint64](t)(d.NewStream())
		check(t, d.StreamWait(s, first))
		opens()
		check(t, d.WaitEvent(first))
		check(t, d.Synchronize(s))
		synctest.Wait()
		if done, err := d.EventDone(second); !done || err != nil {
			t.Errorf("second event: %v, %v", done, err)
		}
	})
}

func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	d := host.New(host.Config{Memory: 64 * mib})
	addrs := both(t, d)
	for range 5 {
		s := must[uint64](t)(d.NewStream())
		check(t, d.Fill(addrs["plain"], 1, 4*mib, s))
	}
	if n := runtime.NumGoroutine(); n != before+6 {
		t.Errorf("%d goroutines for 6 streams", n-before)
	}
	failed, lost := errors.New("failed"), errors.New("lost")
	check(t, d.Launch(0, func() error { return failed }))
	s := must[uint64](t)(d.NewStream())
	check(t, d.Launch(s, func() error { return lost }))
	if err := d.CloseStream(s); err != lost {
		t.Errorf("CloseStream reports %v", err)
	}
	if err := d.Close(); !errors.Is(err, failed) || errors.Is(err, lost) {
		t.Errorf("Close reports %v", err)
	}
	check(t, d.Close())
	// A goroutine is counted until the scheduler has put it away.
	for i := 0; runtime.NumGoroutine() > before && i < 1000; i++ {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines are left", n-before)
	}
	if _, err := d.Malloc(mib, 0); !errors.Is(err, host.ErrClosed) {
		t.Errorf("malloc after Close: %v", err)
	}
	if err := d.Fill(addrs["plain"], 1, 1, 0); !errors.Is(err, host.ErrClosed) {
		t.Errorf("fill after Close: %v", err)
	}
}

// TestCloseWhileTaking: Close comes while memory is being taken away.
func TestCloseWhileTaking(t *testing.T) {
	for name, take := range map[string]func(*host.Device) func() error{
		"unmap": func(d *host.Device) func() error {
			base := must[uint64](t)(d.Reserve(8*mib, 0))
			check(t, d.Map(base, 4*mib, 2*mib))
			return func() error { return d.Unmap(base, 4*mib, 2*mib, 0) }
		},
		"free": func(d *host.Device) func() error {
			addr := must[uint64](t)(d.Malloc(4*mib, 0))
			return func() error { return d.Free(addr, 4*mib) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := host.New(host.Config{Memory: 64 * mib})
				f := take(d)
				opens := gate(t, d, 0)
				taken, closed := make(chan error, 1), make(chan error, 1)
				go func() { taken <- f() }()
				synctest.Wait()
				go func() { closed <- d.Close() }()
				synctest.Wait()
				if len(taken)+len(closed) != 0 {
					t.Fatal("nobody waited for the work")
				}
				opens()
				check(t, <-taken)
				check(t, <-closed)
				if d.Held() != 0 {
					t.Errorf("%d bytes are held", d.Held())
				}
			})
		})
	}
}

// TestMapWhileUnmapping: a range belongs to an Unmap until it has returned.
func TestMapWhileUnmapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := host.New(host.Config{Memory: 64 * mib})
		base := must[uint64](t)(d.Reserve(8*mib, 0))
		check(t, d.Map(base, 4*mib, 2*mib))
		opens := gate(t, d, 0)
		done := make(chan error, 1)
		go func() { done <- d.Unmap(base, 4*mib, 2*mib, 0) }()
		synctest.Wait()
		for name, err := range map[string]error{
			"map":       d.Map(base+2*mib, 4*mib, 2*mib),
			"unmap":     d.Unmap(base, 2*mib, 2*mib, 0),
			"unreserve": d.Unreserve(base, 8*mib),
			"fill":      d.Fill(base, 1, 1, 0),
		} {
			if !errors.Is(err, host.ErrMisuse) {
				t.Errorf("%s while an unmap waits: %v", name, err)
			}
		}
		opens()
		check(t, <-done)
		check(t, d.Map(base, 4*mib, 2*mib))
		check(t, d.Fill(base, 1, 4*mib, 0))
		check(t, d.Synchronize(0))
		check(t, d.Close())
	})
}
