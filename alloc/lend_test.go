package alloc_test

import (
	"errors"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

// TestLendAgain: a block may be handed out again unasked only where no rule
// looks at each request.
func TestLendAgain(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name  string
		conf  string
		setUp func(*alloc.Allocator)
		size  uint64
		again bool
		large bool
	}{
		{name: "small", size: 1000, again: true},
		{name: "large", size: 3 * mib, again: true, large: true},
		{name: "expandable", conf: "expandable_segments:True", size: 3 * mib, again: true, large: true},
		{name: "below max_split", conf: "max_split_size_mb:32", size: 3 * mib, again: true, large: true},
		{name: "oversize", conf: "max_split_size_mb:32", size: 40 * mib, large: true},
		{name: "history", setUp: func(a *alloc.Allocator) { a.RecordHistory(alloc.HistoryOptions{}) }, size: 1000},
		{name: "threshold without a limit", conf: "garbage_collection_threshold:0.5", size: 1000, again: true},
		{name: "threshold", conf: "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9", size: 1000},
		{name: "pool", setUp: func(a *alloc.Allocator) { capture(t, a, 7) }, size: 1000},
		{name: "beside a pool", setUp: func(a *alloc.Allocator) { capture(t, a, 8) }, size: 1000},
		{name: "after a pool", setUp: func(a *alloc.Allocator) {
			if err := capture(t, a, 7).End(); err != nil {
				t.Fatal(err)
			}
		}, size: 1000, again: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := settings.Parse(tt.conf)
			if err != nil {
				t.Fatal(err)
			}
			a := alloc.New(sim.New(sim.Config{}), alloc.WithSettings(s))
			if tt.setUp != nil {
				tt.setUp(a)
			}
			l, err := a.Lender().Lend(tt.size, 7, "")
			if err != nil {
				t.Fatal(err)
			}
			if l.Again != tt.again || l.Large != tt.large || l.Size < tt.size || l.Addr%alloc.MinBlock != 0 {
				t.Errorf("%+v", l)
			}
			if oversize := tt.name == "oversize"; a.Lender().Lends() != (tt.again || oversize) {
				t.Errorf("Lends is %v", a.Lender().Lends())
			}
			if _, err := a.Lender().Return(l.Addr, ""); err != nil {
				t.Error(err)
			}
			var invalid *alloc.InvalidPointerError
			if _, err := a.Lender().Return(l.Addr, ""); !errors.As(err, &invalid) {
				t.Errorf("returned twice: %v", err)
			}
		})
	}
}

func capture(t *testing.T, a *alloc.Allocator, stream uint64) *alloc.Capture {
	t.Helper()
	c, err := a.BeginCapture(alloc.PoolID{}, func(s uint64) bool { return s == stream })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWaiting(t *testing.T) {
	dev := sim.New(sim.Config{Events: sim.Manual})
	a := alloc.New(dev)
	lend := func(size uint64) alloc.Lent {
		l, err := a.Lender().Lend(size, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	small, large, plain := lend(1000), lend(3<<20+5), lend(2000)
	for _, l := range []alloc.Lent{small, large} {
		if err := a.RecordStream(l.Addr, 2); err != nil {
			t.Fatal(err)
		}
	}
	var w alloc.Waiting
	for _, l := range []alloc.Lent{small, large, plain} {
		next, err := a.Lender().Return(l.Addr, "")
		if err != nil || next.Seq <= w.Seq {
			t.Fatal(next, err)
		}
		w = next
	}
	want := alloc.Waiting{
		Seq:   w.Seq,
		Small: alloc.WaitingBlocks{Blocks: 1, Bytes: 1024, Requested: 1000},
		Large: alloc.WaitingBlocks{Blocks: 1, Bytes: int64(large.Size), Requested: 3<<20 + 5},
	}
	if w != want {
		t.Errorf("got  %+v\nwant %+v", w, want)
	}
	if s := a.Stats(); s.RequestedBytes.All.Current != 1000+3<<20+5 {
		t.Errorf("requested %d", s.RequestedBytes.All.Current)
	}
	dev.CompleteAll()
	last := lend(512).Waiting
	if last.Seq <= w.Seq || last.Small != (alloc.WaitingBlocks{}) || last.Large != (alloc.WaitingBlocks{}) {
		t.Errorf("after the streams have passed: %+v", last)
	}
}

func TestShortage(t *testing.T) {
	const mib = 1 << 20
	a := alloc.New(sim.New(sim.Config{TotalMemory: 200 * mib}))
	malloc := func(size, stream uint64) uint64 {
		addr, err := a.Malloc(size, stream)
		if err != nil {
			t.Fatal(err)
		}
		return addr
	}
	free := func(addr uint64) {
		if err := a.Free(addr); err != nil {
			t.Fatal(err)
		}
	}
	x, pin := malloc(8*mib, 1), malloc(8*mib, 1) // one segment of 20 MiB
	y, pinY := malloc(8*mib, 2), malloc(8*mib, 2)
	s, pinS := malloc(1*mib, 1), malloc(1*mib, 1) // one segment of 2 MiB
	free(x)
	free(y)
	free(s)
	_, err := a.Malloc(160*mib, 1)
	var oom *alloc.OutOfMemoryError
	if !errors.As(err, &oom) {
		t.Fatal(err)
	}
	want := alloc.Shortage{Usable: 12 * mib, Largest: 8 * mib, Streams: 12 * mib, Kinds: 1 * mib}
	if got := a.Shortage(oom); got != want || got.Free() != 25*mib {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, p := range []uint64{pin, pinY, pinS} {
		free(p)
	}
}
