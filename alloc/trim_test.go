package alloc_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// Usage agrees with the statistics, with the segments, and with what a release
// then does.
func TestUsage(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True"} {
		r := rand.New(rand.NewPCG(5, 6))
		a := alloc.New(sim.New(sim.Config{TotalMemory: 8 << 30, Events: sim.Manual}), alloc.WithSettings(parse(t, conf)))
		var live []uint64
		pinned := false
		for range 300 {
			if r.IntN(2) == 0 || len(live) == 0 {
				live = append(live, must(a.Malloc(1+r.Uint64N(1<<(1+r.Uint64N(26))), 0)))
			} else {
				i := r.IntN(len(live))
				if r.IntN(8) == 0 {
					check(a.RecordStream(live[i], 1))
				}
				check(a.Free(live[i]))
				live = append(live[:i], live[i+1:]...)
			}
			u, s := a.Usage(), a.Stats()
			if u.Reserved != uint64(s.ReservedBytes.All.Current) || u.Allocated != uint64(s.AllocatedBytes.All.Current) ||
				u.Active != uint64(s.ActiveBytes.All.Current) || u.InactiveSplit != uint64(s.InactiveSplitBytes.All.Current) {
				t.Fatalf("%q: usage %+v, statistics %+v", conf, u, s)
			}
			if u.Releasable != a.Releasable() || u.Releasable > u.Reserved-u.Active {
				t.Fatalf("%q: %d releasable of %d cached, Releasable says %d", conf, u.Releasable, u.Reserved-u.Active, a.Releasable())
			}
			pinned = pinned || u.Releasable < u.Reserved-u.Active
		}
		if !pinned {
			t.Errorf("%q: all cached memory was always releasable", conf)
		}
		check(a.EmptyCache()) // waits for stream 1
		for _, addr := range live[:len(live)/2] {
			check(a.Free(addr))
		}
		u := a.Usage()
		if released, err := a.Trim(0); released != u.Releasable || released == 0 || err != nil {
			t.Errorf("%q: trimmed %d of %d, %v", conf, released, u.Releasable, err)
		}
	}
}

func TestTrim(t *testing.T) {
	dev := sim.New(sim.Config{})
	a := alloc.New(dev)
	kept := must(a.Malloc(30*mib, 0))
	check(a.Free(must(a.Malloc(40*mib, 0))))
	if n, err := a.Trim(40*mib + 1); n != 0 || err != nil || dev.Held() != 70*mib {
		t.Errorf("trimmed %d, %v although less than asked for was there", n, err)
	}
	c, err := a.BeginCapture(alloc.PoolID{}, func(uint64) bool { return false })
	check(err)
	var active *alloc.RouteActiveError
	if n, err := a.Trim(0); n != 0 || !errors.As(err, &active) || dev.Held() != 70*mib {
		t.Errorf("trimmed %d, %v during a capture", n, err)
	}
	check(c.End())
	if n, err := a.Trim(40 * mib); n != 40*mib || err != nil || dev.Held() != 30*mib {
		t.Errorf("trimmed %d, %v", n, err)
	}
	syncs := a.Stats().NumSyncAllStreams
	if n, err := a.Trim(0); n != 0 || err != nil || a.Stats().NumSyncAllStreams != syncs {
		t.Errorf("trimmed %d, %v where nothing was cached", n, err)
	}
	check(a.Free(kept))
}
