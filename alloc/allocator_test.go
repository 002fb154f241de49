package alloc_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/invariants"
	"github.com/ashlar-mem/ashlar/settings"
)

const mib = 1 << 20

func parse(t *testing.T, conf string) settings.Settings {
	t.Helper()
	s, err := settings.Parse(conf)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMallocZero(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	if addr, err := a.Malloc(0, 0); addr != 0 || err != nil {
		t.Errorf("Malloc(0) = %#x, %v", addr, err)
	}
	if err := a.Free(0); err != nil {
		t.Errorf("Free(0): %v", err)
	}
	if s := a.Stats(); s.Allocation.All.Allocated != 0 {
		t.Errorf("%d allocations counted", s.Allocation.All.Allocated)
	}
}

func TestInvalidPointer(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	addr := must(a.Malloc(1000, 0))
	check(a.Free(addr))
	for _, bad := range []uint64{addr, addr + 512, 12345} {
		var invalid *alloc.InvalidPointerError
		if err := a.Free(bad); !errors.As(err, &invalid) || invalid.Addr != bad {
			t.Errorf("Free(%#x): %v", bad, err)
		}
	}
	check(a.RecordStream(addr, 7)) // not allocated: ignored, as in PyTorch
}

func TestOutOfMemoryError(t *testing.T) {
	dev := sim.New(sim.Config{
		TotalMemory: 1 << 30, Unusable: 100 * mib,
		Processes: []driver.Process{{PID: os.Getpid(), Used: 874 * mib}, {PID: 1, Used: 2 << 30}},
	})
	var seen []*alloc.OutOfMemoryError
	a := alloc.New(dev, alloc.WithDevice(3), alloc.WithOOMObserver(func(e *alloc.OutOfMemoryError) { seen = append(seen, e) }))
	must(a.Malloc(266*mib, 0))
	check(a.SetMemoryFraction(0.5))
	_, err := a.Malloc(1500*mib+1, 9)
	var oom *alloc.OutOfMemoryError
	if !errors.As(err, &oom) || !errors.Is(err, driver.ErrOutOfMemory) {
		t.Fatalf("error %v", err)
	}
	want := "CUDA out of memory. Tried to allocate 1.47 GiB. GPU 3 has a total capacity of 1024.00 MiB of which 658.00 MiB is free. " +
		"Including non-PyTorch memory, this process has 874.00 MiB memory in use. Process 1 has 2.00 GiB memory in use. 512.00 MiB allowed; " +
		"Of the allocated memory 266.00 MiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. " +
		"If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  " +
		"See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Errorf("message (-want +got):\n%s", d)
	}
	if oom.Requested != 1500*mib+1 || oom.Rounded != 1500*mib+512 || oom.Segment != 1502*mib || oom.Stream != 9 ||
		oom.Reserved != 266*mib || oom.Limit != 512*mib || !oom.Limited || oom.DeviceTotal != 1<<30 {
		t.Errorf("fields %+v", oom)
	}
	if len(seen) != 1 || seen[0] != oom {
		t.Errorf("observers saw %d errors", len(seen))
	}
	_, err = a.Malloc(1<<60, 0)
	if !errors.As(err, &oom) || !oom.TooLarge {
		t.Errorf("2^60 bytes: %v", err)
	}
	if s := a.Stats(); s.NumOOMs != 1 {
		t.Errorf("%d OOMs counted, want 1", s.NumOOMs)
	}
}

func TestMemoryFraction(t *testing.T) {
	const total = 150_109_880_320 // an H200
	a := alloc.New(sim.New(sim.Config{TotalMemory: total}))
	if _, limited := a.Limit(); limited {
		t.Error("limited at the start")
	}
	for f, want := range map[float64]uint64{0.02: 3_002_197_606, 0.5: total / 2, 0: 0} {
		check(a.SetMemoryFraction(f))
		if got, ok := a.Limit(); got != want || !ok {
			t.Errorf("fraction %v: limit %d, %v, want %d", f, got, ok, want)
		}
	}
	for _, f := range []float64{-0.1, 1.5} {
		if a.SetMemoryFraction(f) == nil {
			t.Errorf("fraction %v accepted", f)
		}
	}
	b := alloc.New(sim.New(sim.Config{TotalMemory: total}), alloc.WithSettings(parse(t, "per_process_memory_fraction:0.25")))
	if got, ok := b.Limit(); got != total/4 || !ok {
		t.Errorf("limit of the settings is %d, %v", got, ok)
	}
	check(b.Configure("per_process_memory_fraction:0.75"))
	if got, _ := b.Limit(); got != total/4 {
		t.Errorf("limit changed to %d at run time", got)
	}
}

func TestResetStats(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	x, y := must(a.Malloc(3*mib, 0)), must(a.Malloc(1000, 0))
	check(a.Free(x))
	a.ResetPeakStats()
	if s := a.Stats().AllocatedBytes; s.All != (alloc.Stat{Current: 1024, Peak: 1024, Allocated: 3*mib + 1024, Freed: 3 * mib}) || s.Large.Peak != 0 {
		t.Errorf("after the reset of the peaks: %+v", s)
	}
	a.ResetAccumulatedStats()
	s := a.Stats()
	if s.AllocatedBytes.All != (alloc.Stat{Current: 1024, Peak: 1024}) || s.NumDeviceAlloc != 0 || s.MaxSplitSize != -1 {
		t.Errorf("after the reset of the sums: %+v", s)
	}
	check(a.Free(y))
	if s := a.Stats().AllocatedBytes.Small; s != (alloc.Stat{Peak: 1024, Freed: 1024}) {
		t.Errorf("after a free: %+v", s)
	}
	if n := len(a.Stats().Map()); n != 122 {
		t.Errorf("%d statistics, want 122", n)
	}
}

func TestHistory(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	check(a.Free(must(a.Malloc(512, 0)))) // before: not kept
	a.RecordHistory(alloc.HistoryOptions{MaxEntries: 5, Skip: []alloc.Action{alloc.ActionFreeRequested}})
	for i := range uint64(4) {
		a.SetMetadata(strings.Repeat("x", int(i)))
		check(a.Free(must(a.Malloc(512*i+1, 0))))
	}
	var got []string
	events := a.History()
	for _, e := range events {
		got = append(got, fmt.Sprintf("%v %d %s", e.Action, e.Block, e.Meta))
	}
	want := []string{"free_completed 1024 x", "alloc 1536 xx", "free_completed 1536 xx", "alloc 2048 xxx", "free_completed 2048 xxx"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if !slices.IsSortedFunc(events, func(x, y alloc.Event) int { return int(x.Time - y.Time) }) || events[0].Time == 0 {
		t.Error("times are not in order")
	}
	snap := a.Snapshot()
	if len(snap.Events) != 5 || len(snap.Segments) != 1 {
		t.Errorf("snapshot with %d events and %d segments", len(snap.Events), len(snap.Segments))
	}
	// The event of the snapshot itself shows up only afterwards.
	if h := a.History(); h[len(h)-1].Action != alloc.ActionSnapshot {
		t.Errorf("last event is %v", h[len(h)-1])
	}
	a.StopHistory()
	if a.History() != nil {
		t.Error("history after StopHistory")
	}
}

// source hands out segments from its own range and refuses after some.
type source struct {
	next  uint64
	left  int
	freed []uint64
}

func (s *source) Malloc(size, _ uint64) (uint64, error) {
	if s.left == 0 {
		return 0, driver.ErrOutOfMemory
	}
	s.left--
	s.next += size
	return s.next - size, nil
}

func (s *source) Free(addr, _ uint64) error {
	s.freed = append(s.freed, addr)
	return nil
}

func TestSegmentSource(t *testing.T) {
	dev := sim.New(sim.Config{})
	a := alloc.New(dev, alloc.WithSettings(parse(t, "expandable_segments:True")))
	src := &source{next: 1 << 40, left: 3}
	p, err := a.NewMemPool(alloc.MemPoolOptions{Source: src})
	check(err)
	check(p.Begin(0))
	x, y, z := must(a.Malloc(1000, 0)), must(a.Malloc(3*mib, 0)), must(a.Malloc(30*mib+5, 0))
	if want := []uint64{1 << 40, 1<<40 + 2*mib, 1<<40 + 22*mib}; !slices.Equal([]uint64{x, y, z}, want) {
		t.Errorf("addresses %#x", []uint64{x, y, z})
	}
	if _, err := a.Malloc(64*mib, 0); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("a refusing source: %v", err)
	}
	check(p.End())
	for _, addr := range []uint64{x, y, z} {
		check(a.Free(addr))
	}
	check(p.Close())
	if len(src.freed) != 3 || dev.Calls()[sim.Malloc] != 0 || len(a.Segments()) != 0 {
		t.Errorf("%d segments returned, %d driver calls, %d segments left", len(src.freed), dev.Calls()[sim.Malloc], len(a.Segments()))
	}
}

func TestPoolErrors(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	p, err := a.NewMemPool(alloc.MemPoolOptions{})
	check(err)
	check(p.Begin(0))
	var pe *alloc.PoolError
	if err := p.Begin(0); !errors.As(err, &pe) {
		t.Errorf("second Begin: %v", err)
	}
	var route *alloc.RouteActiveError
	if err := p.Close(); !errors.As(err, &route) {
		t.Errorf("Close while active: %v", err)
	}
	check(p.End())
	if err := p.End(); !errors.As(err, &pe) {
		t.Errorf("second End: %v", err)
	}
	check(p.Close())
	for name, f := range map[string]func() error{"Close": p.Close, "Begin": func() error { return p.Begin(0) }} {
		if err := f(); !errors.As(err, &pe) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	if _, err := a.BeginCapture(alloc.PoolID{First: 0, Second: 1}, func(uint64) bool { return true }); err != nil {
		t.Errorf("the id of a deleted pool can be used again: %v", err)
	}
}

// TestRouteOfThread: a MemPool serves only the thread that entered it.
func TestRouteOfThread(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	p, err := a.NewMemPool(alloc.MemPoolOptions{})
	check(err)
	check(p.Begin(7))
	must(a.MallocOn(1000, 0, 7))
	must(a.MallocOn(1000, 0, 8))
	pools := map[alloc.PoolID]uint64{}
	for _, s := range a.Segments() {
		pools[s.Pool] += s.AllocatedSize
	}
	if want := map[alloc.PoolID]uint64{{}: 1024, p.ID(): 1024}; !cmp.Equal(pools, want) {
		t.Errorf("allocated by pool: %v", pools)
	}
}

func TestReclaimer(t *testing.T) {
	var a *alloc.Allocator
	var held uint64
	calls := 0
	a = alloc.New(sim.New(sim.Config{}), alloc.WithReclaimer(func() bool {
		if calls++; held == 0 {
			return false
		}
		check(a.Free(held)) // may call the allocator
		held = 0
		return true
	}))
	held = must(a.Malloc(30*mib, 0))
	first := held
	if got := must(a.Malloc(30*mib, 0)); got != first {
		t.Errorf("got %#x, want the reclaimed %#x", got, first)
	}
	if calls != 2 || a.Stats().NumDeviceAlloc != 1 {
		t.Errorf("%d calls, %d segments", calls, a.Stats().NumDeviceAlloc)
	}
}

// TestConcurrent: goroutines on several streams, with record_stream, pools,
// flushes and settings in between. Run it with -race.
func TestConcurrent(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True", "release_lock_on_cudamalloc:True"} {
		a := alloc.New(sim.New(sim.Config{TotalMemory: 4 << 30}), alloc.WithSettings(parse(t, conf)))
		a.RecordHistory(alloc.HistoryOptions{MaxEntries: 1000})
		var done sync.WaitGroup
		for g := range uint64(6) {
			done.Go(func() {
				r := rand.New(rand.NewPCG(g, 1))
				var live []uint64
				for range 3000 {
					switch n := r.IntN(100); {
					case n < 50:
						addr, err := a.MallocOn(1+r.Uint64N(1<<(1+r.Uint64N(24))), g%3, g)
						if err == nil {
							live = append(live, addr)
						} else if !errors.Is(err, driver.ErrOutOfMemory) {
							t.Errorf("malloc: %v", err)
						}
					case n < 95 && len(live) > 0:
						i := r.IntN(len(live))
						if n < 55 {
							check(a.RecordStream(live[i], r.Uint64N(4)))
						}
						check(a.Free(live[i]))
						live = slices.Delete(live, i, i+1)
					case n == 95:
						check(a.EmptyCache())
					case n == 96:
						a.Stats()
						a.Snapshot()
					case n == 97 && g == 0:
						p, err := a.NewMemPool(alloc.MemPoolOptions{})
						check(err)
						check(p.Begin(g))
						addr, err := a.MallocOn(1000, 0, g)
						check(p.End())
						check(p.Close())
						if err == nil {
							check(a.Free(addr))
						}
					}
				}
				for _, addr := range live {
					check(a.Free(addr))
				}
			})
		}
		done.Wait()
		if err := a.CheckInvariants(); err != nil {
			t.Errorf("%q: %v", conf, err)
		}
		if s := a.Stats(); s.Allocation.All.Current != 0 {
			t.Errorf("%q: %d allocations left", conf, s.Allocation.All.Current)
		}
	}
}

// TestNoHeapAllocations: malloc and free allocate nothing in steady state,
// with the history off and on, in both modes.
func TestNoHeapAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the checks after every operation allocate")
	}
	for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:64"} {
		for _, history := range []bool{false, true} {
			a := alloc.New(sim.New(sim.Config{}), alloc.WithSettings(parse(t, conf)))
			if history {
				a.RecordHistory(alloc.HistoryOptions{MaxEntries: 1000})
			}
			r := rand.New(rand.NewPCG(1, 2))
			slots := make([]uint64, 256)
			step := func() {
				i := r.IntN(len(slots))
				check(a.Free(slots[i]))
				slots[i] = must(a.Malloc(1<<(9+r.Uint64N(15)), uint64(i%2)))
				if i%16 == 0 {
					check(a.RecordStream(slots[i], 5))
				}
			}
			for range 50_000 {
				step()
			}
			if n := testing.AllocsPerRun(1000, step); n != 0 {
				t.Errorf("%q, history %v: %v heap allocations in a malloc and a free", conf, history, n)
			}
		}
	}
}

// TestDependencies: a program that imports the allocator gets nothing but the
// standard library and this module with it.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"github.com/ashlar-mem/ashlar/alloc", "github.com/ashlar-mem/ashlar/driver/sim").Output()
	if err != nil {
		t.Skipf("go list does not work here: %v", err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(pkg, "github.com/ashlar-mem/ashlar/") {
			t.Errorf("the allocator imports %s", pkg)
		}
	}
}
