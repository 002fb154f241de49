package alloc_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

func TestOOMRetry(t *testing.T) {
	const size = 30 * mib
	for _, c := range []struct {
		name    string
		times   int
		holds   int  // blocks that the hook can free
		blocks  int  // it says true as long as it frees one; this many are needed
		wantErr bool // the request fails
		calls   int
	}{
		{"enough at once", 3, 1, 1, false, 1},
		{"third time", 3, 3, 3, false, 3},
		{"one time too few", 2, 3, 3, true, 2},
		{"the hook gives up", 5, 1, 3, true, 2},
		{"nothing to give", 5, 0, 1, true, 1},
		{"never asked", 0, 3, 1, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev := sim.New(sim.Config{TotalMemory: 3 * size})
			var (
				a      *alloc.Allocator
				events []alloc.Action
				calls  int
				told   int
				held   []uint64
			)
			hook := func(e *alloc.OutOfMemoryError) bool {
				calls++
				if e.Requested != uint64(c.blocks)*size || e.Stream != 4 || e.Reserved != 3*size-uint64(calls-1)*size {
					t.Errorf("call %d was told %+v", calls, e)
				}
				if len(held) == 0 {
					return false
				}
				check(a.Free(held[0])) // without the lock
				held = held[1:]
				return true
			}
			a = alloc.New(dev, alloc.WithOOMRetry(c.times, hook),
				alloc.WithObserver(func(e alloc.Event) { events = append(events, e.Action) }),
				alloc.WithOOMObserver(func(*alloc.OutOfMemoryError) { told++ }))
			for i := range 3 {
				addr := must(a.Malloc(size, 0))
				if i < c.holds {
					held = append(held, addr)
				}
			}
			_, err := a.Malloc(uint64(c.blocks)*size, 4)
			var oom *alloc.OutOfMemoryError
			if errors.As(err, &oom) != c.wantErr || calls != c.calls {
				t.Errorf("error %v after %d calls, want failure %v after %d", err, calls, c.wantErr, c.calls)
			}
			failures := 0
			if c.wantErr {
				failures = 1
			}
			ooms := 0
			for _, e := range events {
				if e == alloc.ActionOOM {
					ooms++
				}
			}
			if s := a.Stats(); ooms != failures || told != failures || s.NumOOMs != int64(failures) {
				t.Errorf("%d events, %d counted, %d told, want %d", ooms, s.NumOOMs, told, failures)
			}
			check(a.CheckInvariants())
		})
	}
}

// The trace names the stream and the pool of a request that failed although the
// hook was asked.
func TestOOMRetryInPool(t *testing.T) {
	for _, times := range []int{0, 1} {
		var seen alloc.Event
		a := alloc.New(sim.New(sim.Config{TotalMemory: 50 * mib}),
			alloc.WithOOMRetry(times, func(*alloc.OutOfMemoryError) bool { return true }),
			alloc.WithObserver(func(e alloc.Event) { seen = e }))
		pool, err := a.NewMemPool(alloc.MemPoolOptions{})
		check(err)
		check(pool.Begin(3))
		if _, err := a.MallocOn(60*mib, 8, 3); err == nil {
			t.Fatal("60 MiB on a device of 50")
		}
		want := alloc.Event{Action: alloc.ActionOOM, Addr: 50 * mib, Size: 60 * mib, Stream: 8, Pool: pool.ID()}
		if d := cmp.Diff(want, seen); d != "" {
			t.Errorf("%d retries: last event (-want +got):\n%s", times, d)
		}
	}
}

// What no release of memory can mend does not reach the hook.
func TestOOMRetryOnlyForMemory(t *testing.T) {
	dev := sim.New(sim.Config{TotalMemory: 1 << 30})
	calls := 0
	a := alloc.New(dev, alloc.WithOOMRetry(3, func(*alloc.OutOfMemoryError) bool { calls++; return true }))
	if _, err := a.Malloc(1<<60, 0); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("2^60 bytes: %v", err)
	}
	broken := errors.New("broken")
	dev.FailKind(sim.Malloc, 1, broken)
	if _, err := a.Malloc(1000, 0); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if calls != 0 {
		t.Errorf("the hook was called %d times", calls)
	}
}

// Goroutines that run out of memory at the same time and give way to each other.
func TestOOMRetryConcurrent(t *testing.T) {
	const size, workers = 20 * mib, 8
	var waits atomic.Int64
	a := alloc.New(sim.New(sim.Config{TotalMemory: 3 * size}), alloc.WithOOMRetry(1_000_000, func(*alloc.OutOfMemoryError) bool {
		waits.Add(1)
		time.Sleep(10 * time.Microsecond)
		return true
	}))
	full := sync.WaitGroup{} // until memory is full nobody frees
	full.Add(3)
	var wg sync.WaitGroup
	var served atomic.Int64
	for range workers {
		wg.Go(func() {
			addr, err := a.Malloc(size, 0)
			if err != nil {
				t.Error(err)
				return
			}
			if served.Add(1) <= 3 {
				full.Done()
				full.Wait()
				for waits.Load() == 0 {
					time.Sleep(10 * time.Microsecond)
				}
			}
			check(a.Free(addr))
		})
	}
	wg.Wait()
	check(a.CheckInvariants())
	if s := a.Stats(); s.NumOOMs != 0 || s.Allocation.All.Allocated != workers {
		t.Errorf("%d failures, %d allocations", s.NumOOMs, s.Allocation.All.Allocated)
	}
}

// A hook that panics takes the request with it and nothing else.
func TestHookPanics(t *testing.T) {
	for name, option := range map[string]alloc.Option{
		"retry":     alloc.WithOOMRetry(3, func(*alloc.OutOfMemoryError) bool { panic("hook") }),
		"reclaimer": alloc.WithReclaimer(func() bool { panic("hook") }),
		"observer":  alloc.WithOOMObserver(func(*alloc.OutOfMemoryError) { panic("hook") }),
	} {
		for conf, request := range map[string]func(*alloc.Allocator) error{
			"malloc": func(a *alloc.Allocator) error { _, err := a.Malloc(90*mib, 0); return err },
			"lend":   func(a *alloc.Allocator) error { _, err := a.Lender().Lend(90*mib, 0, ""); return err },
		} {
			t.Run(name+" "+conf, func(t *testing.T) {
				a := alloc.New(sim.New(sim.Config{TotalMemory: 64 * mib}), option)
				func() {
					defer func() {
						if r := recover(); r != "hook" {
							t.Errorf("recovered %v", r)
						}
					}()
					t.Error("returned: ", request(a))
				}()
				done := make(chan error, 1)
				go func() { done <- errors.Join(a.EmptyCache(), a.CheckInvariants()) }()
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(time.Minute): // it hangs
					t.Fatal("the allocator stays locked")
				}
			})
		}
	}
}
