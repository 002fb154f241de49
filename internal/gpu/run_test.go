//go:build linux

package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
)

// once is the pace of tests: one round of each case.
func once() *pace {
	return &pace{least: 1, most: 1, limit: time.Hour, copied: mib, managed: []uint64{mib, 2 * mib}}
}

// left lists what the stand-in still holds.
func left(fake *cudatest.Library) string {
	var all []string
	for _, kind := range cudatest.Kinds {
		if n := fake.Count(kind); n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(all, ", ")
}

// A whole bench: every case is timed in each pass, and nothing is left.
func TestRun(t *testing.T) {
	fake := cudatest.Use(t)
	var done []int
	b, err := Run(t.Context(), mustOpen(t), 0, Options{Quick: true, pace: once(), Progress: func(n, total int) {
		if n >= total {
			t.Errorf("%d of %d", n, total)
		}
		done = append(done, n)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Skipped) > 0 || b.Interrupted {
		t.Errorf("left out: %+v, interrupted %v", b.Skipped, b.Interrupted)
	}
	if !slices.IsSorted(done) || len(done) == 0 {
		t.Errorf("progress %v", done)
	}
	cases := map[string]int{}
	for _, r := range b.Rows {
		cases[r.Group+" "+r.Case+" "+r.Part]++
		if r.Rounds != passes || r.Least <= 0 || r.Least > r.Low || r.Low > r.Median || r.Median > r.High || r.High > r.Most || r.What == "" {
			t.Errorf("%+v", r)
		}
	}
	for want, n := range map[string]int{
		"driver pair alloc": 5, "driver pair free": 5, "driver pair all": 5,
		"async pair all": 4, "async pair_and_sync all": 4,
		"handle mapping create": 4, "handle mapping map": 4, "handle mapping set_access": 4, "handle mapping unmap": 4, "handle mapping release": 4,
		"range mapping set_access": 3, "range mapping all": 3,
		"engine hot_pair all": 2, "engine window_512 all": 2, "engine record_stream_pair all": 2, "contention hot_pair all": 4,
		"growth grow malloc": 8, "growth grow empty_cache": 8,
		"copy pinned to_device": 2, "copy pinned to_host": 2, "copy pageable to_device": 2, "copy pageable to_host": 2, "copy device on_device": 2,
		"managed explicit all": 2, "managed on_demand to_device": 2, "managed prefetch to_host": 2,
		"threads driver_pair all": 5, "threads pool_pair all": 5, "streams reuse all": 5, "streams no_reuse all": 5,
		"access sequential device": 1, "access strided managed_fault": 1, "access random managed_mapped": 1,
		"tier host_pages create": 2, "tier host_pages release": 2, "tier park to_host": 2, "tier park read": 2, "tier park write": 2, "tier park to_device": 2,
		"fault on_demand managed_fault": 1, "fault on_demand managed_resident": 1, "fault on_demand to_host": 1,
	} {
		if cases[want] != n {
			t.Errorf("%s: %d rows, want %d", want, cases[want], n)
		}
	}
	if len(b.Reading) != 9 {
		t.Errorf("%q", b.Reading)
	}
	if s := left(fake); s != "" {
		t.Errorf("left behind: %s", s)
	}
}

// What does not fit into half of the free memory is left out, with the reason.
func TestRunLittleMemory(t *testing.T) {
	fake := cudatest.Use(t, "FAKECUDA_MEMORY=524288000") // 200 MiB when there is a context
	p := once()
	p.managed = []uint64{mib, 100 * mib}
	b, err := Run(t.Context(), mustOpen(t), 0, Options{Quick: true, pace: p})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b.Find(GroupManaged, "", PartAll)); n != 3 {
		t.Errorf("%d ways of managed memory that fits", n)
	}
	if b.FreeBytes != 200*mib {
		t.Errorf("%d free", b.FreeBytes)
	}
	for _, r := range b.Rows {
		need := uint64(0)
		if r.Size != nil {
			need = *r.Size
		}
		if r.Handles != nil {
			need *= uint64(*r.Handles)
		}
		if need > 100*mib {
			t.Errorf("%s %s took %d bytes", r.Group, r.Case, need)
		}
	}
	if b.find(GroupDriver, CasePair, PartAll, 20*mib) == nil || b.find(GroupGrowth, CaseGrow, PartMalloc, 20*mib) == nil {
		t.Errorf("what fits is left out: %+v", b.Skipped)
	}
	seen := map[string]bool{}
	for _, s := range b.Skipped {
		key := fmt.Sprint(s.Group, s.Case, value(s.Settings), value(s.Size), value(s.Handles), value(s.Goroutines))
		if s.Size != nil && *s.Size == 2*gib && s.Why != "it needs 2.00 GiB and may take half of the 200.00 MiB that are free" {
			t.Error(s.Why)
		}
		if seen[key] {
			t.Errorf("%+v is listed twice", s)
		}
		seen[key] = true
	}
	if s := left(fake); s != "" {
		t.Errorf("left behind: %s", s)
	}
}

func value[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// An interrupt ends it with the rows until then.
func TestRunInterrupted(t *testing.T) {
	fake := cudatest.Use(t)
	ctx, cancel := context.WithCancel(t.Context())
	b, err := Run(ctx, mustOpen(t), 0, Options{Quick: true, pace: once(), Progress: func(n, _ int) {
		if n == 3 {
			cancel()
		}
	}})
	if err != nil || !b.Interrupted || len(b.Rows) != 9 || b.Rows[8].Rounds != 1 || len(b.Skipped) > 0 {
		t.Errorf("%+v, %v", b, err)
	}
	if s := left(fake); s != "" {
		t.Errorf("left behind: %s", s)
	}
}

// When the time is used up the rest is left out; what was timed stays.
func TestRunTimeOver(t *testing.T) {
	fake := cudatest.Use(t)
	p := once()
	p.limit = 200 * time.Millisecond
	b, err := Run(t.Context(), mustOpen(t), 0, Options{Quick: true, pace: p, Progress: func(n, _ int) {
		if n == 2 {
			time.Sleep(p.limit)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	// Two cases of three rows each were timed before.
	if len(b.Rows) != 6 || len(b.Skipped) < 40 || b.Interrupted {
		t.Errorf("%d rows, %d left out", len(b.Rows), len(b.Skipped))
	}
	if why := b.Skipped[0].Why; why != "the 0.2 s that a bench may take were used up" {
		t.Error(why)
	}
	if s := left(fake); s != "" {
		t.Errorf("left behind: %s", s)
	}
}

func TestRunRefused(t *testing.T) {
	cudatest.Use(t, "FAKECUDA_VIRTUAL=0", "FAKECUDA_POOLS=0", "FAKECUDA_MEMORY=524288000")
	lib := mustOpen(t)
	if _, err := Run(t.Context(), lib, 7, Options{}); !errors.Is(err, cuda.ErrNoDevice) {
		t.Errorf("device 7: %v", err)
	}
	b, err := Run(t.Context(), lib, 0, Options{Quick: true, pace: once()})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range b.Rows {
		if r.Group == GroupAsync || r.Group == GroupHandle || r.Group == GroupRange || r.Settings != nil && *r.Settings == SettingsExpandable {
			t.Errorf("%+v", r)
		}
	}
	if len(b.Find(GroupDriver, "", "")) != 9 || len(b.Skipped) < 15 {
		t.Errorf("%d rows, left out %+v", len(b.Rows), b.Skipped)
	}
}

// newRunner is a runner for single cases.
func newRunner(t *testing.T, fake *cudatest.Library) *runner {
	dev := cudatest.Device(t, fake)
	r := &runner{timer: timer{pace: *once(), ctx: t.Context(), end: time.Now().Add(time.Hour)}, dev: dev, bench: &Bench{}}
	var err error
	if r.stream, err = dev.NewStream(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.unload()
		if err := dev.CloseStream(r.stream); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A failure of any call that gets memory or uses it is the error of its case,
// and leaves nothing behind.
func TestFailureAtEveryCall(t *testing.T) {
	fake := cudatest.Use(t)
	r := newRunner(t, fake)
	if _, err := r.kernels(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.loadGather(); err != nil {
		t.Fatal(err)
	}
	calls := []string{
		"cuMemGetInfo_v2", "cuMemAlloc_v2", "cuMemHostAlloc", "cuMemAllocManaged", "cuMemAllocFromPoolAsync", "cuMemPoolGetAttribute",
		"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
		"cuMemcpyDtoDAsync_v2", "cuMemPrefetchAsync", "cuMemAdvise", "cuMemPoolSetAttribute", "cuMemsetD8Async", "cuLaunchKernel", "cuStreamSynchronize",
	}
	reached := map[string]bool{}
	for name, do := range map[string]func() error{
		"pair":           func() error { return r.pair(4 * kib) },
		"async":          func() error { return r.withPool(true, func() error { return r.asyncPair(4 * kib) }) },
		"async and sync": func() error { return r.withPool(false, func() error { return r.asyncSyncPair(4 * kib) }) },
		"mapping":        func() error { return r.mapping(GroupRange, 2*mib, 3) },
		// Without expandable segments: the engine keeps a range that it reserved.
		"grow": func() error {
			return r.withEngine(SettingsPlain, func(a *alloc.Allocator) error { return r.grow(a, SettingsPlain, mib) })
		},
		"copies, pinned":   func() error { return r.copies(CasePinned, 4*kib) },
		"copies, pageable": func() error { return r.copies(CasePageable, 4*kib) },
		"copies, device":   func() error { return r.copies(CaseDevice, 4*kib) },
		"explicit":         func() error { return r.thereAndBack(CaseExplicit, 64*kib) },
		"on demand":        func() error { return r.thereAndBack(CaseOnDemand, 64*kib) },
		"prefetch":         func() error { return r.thereAndBack(CasePrefetch, 64*kib) },
		"threads":          func() error { return r.threads(CaseDriver, 2) },
		"pool threads":     func() error { return r.withPool(true, func() error { return r.threads(CasePool, 2) }) },
		"streams":          func() error { return r.withPool(true, func() error { return r.aroundStreams(CaseNoReuse, 2) }) },
		"access":           func() error { return r.access(CaseRandom, 5, 64*kib) },
		"faults":           func() error { return r.faults(faultPages * 2 * mib) },
		"host pages":       func() error { return r.hostPages(2 * mib) },
	} {
		if err := do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before := left(fake)
		for _, call := range calls {
			for n := 1; ; n++ {
				const unknown = 999
				fake.Fail(call, n, unknown)
				err := do()
				fake.Heal()
				if err == nil {
					break // there were no n calls
				}
				reached[call] = true
				var refused *cuda.Error
				if !errors.As(err, &refused) || refused.Call != call || refused.Code != unknown {
					t.Fatalf("%s, call %d of %s: %v", name, n, call, err)
				}
				if after := left(fake); after != before {
					t.Fatalf("%s, call %d of %s left behind: %s, before %s", name, n, call, after, before)
				}
			}
		}
	}
	for _, call := range calls {
		if !reached[call] {
			t.Errorf("%s was never called", call)
		}
	}
}

// Parking that fails gives back what was made for it. The engine keeps a range that it
// reserved, so the calls fail after its block is there.
func TestParkFails(t *testing.T) {
	fake := cudatest.Use(t)
	r := newRunner(t, fake)
	if err := r.park(4 * mib); err != nil {
		t.Fatal(err)
	}
	before := left(fake)
	for _, c := range []struct {
		call string
		n    int
	}{{"cuMemcpyAsync", 1}, {"cuMemcpyAsync", 2}, {"cuLaunchKernel", 1}, {"cuLaunchKernel", 2}, {"cuCtxSynchronize", 1}} {
		const unknown = 999
		fake.Fail(c.call, c.n, unknown)
		err := r.park(4 * mib)
		fake.Heal()
		var refused *cuda.Error
		if !errors.As(err, &refused) || refused.Call != c.call {
			t.Errorf("call %d of %s: %v", c.n, c.call, err)
		}
		if after := left(fake); after != before {
			t.Errorf("call %d of %s left behind: %s, before %s", c.n, c.call, after, before)
		}
	}
}

// Data really moves: what the kernel wrote is on the host, and what the host
// changes is noticed by the next kernel.
func TestJourney(t *testing.T) {
	fake := cudatest.Use(t)
	r := newRunner(t, fake)
	set, err := r.kernels()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{CaseExplicit, CaseOnDemand, CasePrefetch} {
		t.Run(kind, func(t *testing.T) {
			j, give, err := r.newJourney(kind, 64*kib)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := give(); err != nil {
					t.Error(err)
				}
			}()
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(errors.Join(set.Clear(j.outcome, r.stream), set.Write(j.addr, j.words(), j.seed, r.stream), r.back(j)))
			check(r.there(set, j))
			check(r.back(j))
			for i := range j.words() {
				if got := binary.LittleEndian.Uint64(j.host[8*i:]); got != kernels.Word(2, i) {
					t.Fatalf("word %d is %#x", i, got)
				}
			}
			j.host[8*77]++
			check(r.there(set, j))
			if found, err := set.Outcome(j.outcome, r.stream); err != nil || found.Wrong != 1 || found.First != 77 {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
	if _, _, err := r.newJourney(CaseOnDemand, mostManaged+1); err == nil || !strings.Contains(err.Error(), "at most 4.00 GiB") {
		t.Errorf("more managed memory than there may be: %v", err)
	}
}
