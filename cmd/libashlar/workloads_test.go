package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// call is a request, or the free of what an earlier one got.
type call struct {
	free         bool
	slot         int
	size, stream uint64
}

// recorded reads the requests and frees of a recording, at most max of them,
// and the peak of what they use.
func recorded(t *testing.T, path string, max int) (calls []call, peak uint64) {
	t.Helper()
	f, err := snapshot.Open(context.Background(), path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := f.Pick(0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[uint64]call{} // by address
	var used uint64
	for i := 0; i < tr.Events.Len() && len(calls) < max; i++ {
		e := tr.Events.At(i)
		switch e.Action {
		case alloc.ActionAlloc:
			c := call{slot: len(calls), size: e.Size, stream: e.Stream}
			out[e.Addr] = c
			calls = append(calls, c)
			if used += e.Size; used > peak {
				peak = used
			}
		case alloc.ActionFreeRequested:
			c, ok := out[e.Addr]
			if !ok {
				continue // from before the recording
			}
			delete(out, e.Addr)
			used -= c.size
			c.free = true
			calls = append(calls, c)
		}
	}
	return calls, peak
}

const (
	h200    = 150109880320
	granule = 20 << 20 // what expandable segments grow by
)

// alone performs calls on an engine without a front under a fraction of the
// device's memory. It returns the peak of what was reserved and how many calls
// went well.
func alone(t *testing.T, calls []call, fraction float64) (peak int64, done int) {
	t.Helper()
	a := alloc.New(sim.New(sim.Config{TotalMemory: h200, Started: true}), alloc.WithSettings(defaults().engine))
	if err := a.SetMemoryFraction(fraction); err != nil {
		t.Fatal(err)
	}
	addrs := make([]uint64, len(calls))
	for i, c := range calls {
		var err error
		if c.free {
			err = a.Free(addrs[c.slot])
		} else {
			addrs[c.slot], err = a.Malloc(c.size, c.stream)
		}
		var oom *alloc.OutOfMemoryError
		if errors.As(err, &oom) {
			return a.Stats().ReservedBytes.All.Peak, i
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return a.Stats().ReservedBytes.All.Peak, len(calls)
}

// TestWorkloads performs recorded workloads through the front: it may reserve
// little more than an engine without one, and runs under every limit under which
// that runs.
func TestWorkloads(t *testing.T) {
	short.Skip(t)
	paths, err := filepath.Glob("../../testdata/snapshots/*-default.pickle.gz")
	if err != nil || len(paths) < 20 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "-tight-default.pickle.gz") {
			continue // the beginnings of the same workloads
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), "-default.pickle.gz"), func(t *testing.T) {
			t.Parallel()
			calls, used := recorded(t, path, 60_000)
			tight := int(float64(used)*1.03+24<<20) / (h200 / 1_000_000)
			for _, millionths := range []int{1_000_000, tight} {
				want, done := alone(t, calls, float64(millionths)/1e6)
				s := &script{t: t}
				s.expect("ok", "fraction %d 0", millionths)
				for i, c := range calls[:min(done+1, len(calls))] {
					if c.free {
						s.expect("ok", "free %d", c.slot)
						continue
					}
					s.say(func(got string) {
						if _, err := strconv.ParseUint(got, 10, 64); (err == nil) != (i < done) {
							t.Errorf("call %d: %s; without a front %d of %d calls go well", i, got, done, len(calls))
						}
					}, "malloc %d %d %d 0", c.slot, c.size, c.stream)
				}
				s.say(func(text string) {
					f := decode[struct {
						frontState
						Engine map[string]any `json:"engine"`
					}](t, text)
					got := flatten("", f.Engine, map[string]int64{})["reserved_bytes.all.peak"]
					t.Logf("%d calls, limit %d: %d%% hits; reserved %s, without a front %s", len(calls), millionths,
						f.Hits*100/(f.Hits+f.Misses), units.Size(uint64(got)), units.Size(uint64(want)))
					if got > want+granule {
						t.Errorf("reserved %s, without a front %s", units.Size(uint64(got)), units.Size(uint64(want)))
					}
				}, "front 0")
				if said := s.run(memoryVariable + "=" + strconv.Itoa(h200)); said != "" {
					t.Errorf("standard error: %s", said)
				}
			}
		})
	}
}
