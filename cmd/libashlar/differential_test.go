package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// A random program, performed by the library and by an engine without a front.
type twin struct {
	*script
	rng    *rand.Rand
	engine *alloc.Allocator

	live    []slot
	addrs   map[int]uint64 // where the library put a slot
	slots   int
	capture *alloc.Capture
	pools   uint64

	requested           int64 // the plain model: bytes asked for, live
	count               int64
	mallocs, frees      int64
	families            []string
	reserved, reserved0 int64 // peaks: library, engine
}

type slot struct {
	n            int
	size, stream uint64
	addr         uint64 // in the engine
}

var twinSizes = []uint64{1, 512, 513, 4096, 4096, 4096, 100_000, 1 << 20, 1<<20 + 1, 3 << 20, 3 << 20, 12 << 20, 25<<20 + 7, 60 << 20}

func (w *twin) step() {
	if w.capture != nil && w.rng.IntN(20) == 0 {
		w.pool()
	}
	switch dice := w.rng.IntN(1000); {
	case dice < 470 || len(w.live) == 0:
		w.malloc()
	case dice < 940:
		w.free(w.rng.IntN(len(w.live)))
	case dice < 945: // as at the end of a step
		for len(w.live) > 20 {
			w.free(len(w.live) - 1)
		}
	case dice < 975:
		s := w.live[w.rng.IntN(len(w.live))]
		stream := uint64(w.rng.IntN(3))
		w.expect("ok", "record %d %d", s.n, stream)
		w.must(w.engine.RecordStream(s.addr, stream))
	case dice < 978:
		w.expect("ok", "empty")
		w.must(w.engine.EmptyCache())
	case dice < 981: // a loop that makes and drops the same tensors
		sizes := []uint64{w.size(), w.size(), w.size()}
		for range 20 {
			for _, size := range sizes {
				w.mallocSize(size, 0)
			}
			for range sizes {
				w.free(len(w.live) - 1)
			}
		}
	case dice < 984:
		w.expect("ok", "peaks 0")
		w.engine.ResetPeakStats()
	case dice < 986:
		w.expect("ok", "sums 0")
		w.engine.ResetAccumulatedStats()
		w.mallocs, w.frees = 0, 0
	case dice < 990:
		w.pool()
	case dice < 993:
		w.compare()
	case dice == 999: // more sizes than the front can tell apart
		first := len(w.live)
		for range 2 {
			for i := range uint64(1500) {
				for stream := range uint64(3) {
					w.mallocSize(1+i*3, stream)
				}
			}
			w.compare()
			for len(w.live) > first {
				w.free(len(w.live) - 1)
			}
		}
	}
}

func (w *twin) size() uint64 {
	if w.rng.IntN(10) == 0 {
		return 1 + w.rng.Uint64N(30<<20)
	}
	return twinSizes[w.rng.IntN(len(twinSizes))]
}

func (w *twin) malloc() { w.mallocSize(w.size(), uint64(w.rng.IntN(6)%3)) }

func (w *twin) mallocSize(size, stream uint64) {
	addr, err := w.engine.Malloc(size, stream)
	w.must(err)
	n := w.slots
	w.slots++
	w.address(func(a uint64) { w.addrs[n] = a }, "malloc %d %d %d 0", n, size, stream)
	w.live = append(w.live, slot{n, size, stream, addr})
	w.requested += int64(size)
	w.count++
	w.mallocs++
}

func (w *twin) free(i int) {
	s := w.live[i]
	w.live[i] = w.live[len(w.live)-1]
	w.live = w.live[:len(w.live)-1]
	w.expect("ok", "free %d", s.n)
	w.must(w.engine.Free(s.addr))
	w.requested -= int64(s.size)
	w.count--
	w.frees++
}

// pool begins a capture on stream 1, or ends and releases it.
func (w *twin) pool() {
	if w.capture == nil {
		w.pools++
		w.expect("ok", "begin 0 %d 0 1", w.pools)
		c, err := w.engine.BeginCapture(alloc.PoolID{First: w.pools}, func(stream uint64) bool { return stream == 1 })
		w.must(err)
		w.capture = c
		return
	}
	w.expect("ok", "end 0 %d 0", w.pools)
	w.must(w.capture.End())
	w.expect("ok", "release 0 %d 0", w.pools)
	w.must(w.capture.Release())
	w.capture = nil
}

// compare has the statistics and the state of the library compared with those
// of the engine, as they are at this point of the program.
func (w *twin) compare() {
	want := w.engine.Stats().Map()
	requested, count, mallocs, frees := w.requested, w.count, w.mallocs, w.frees
	live := slices.Clone(w.live)
	at := w.slots
	w.say(func(text string) {
		got := flatten("", decode[map[string]any](w.t, text), map[string]int64{})
		for key, v := range want {
			family, _, _ := strings.Cut(key, ".")
			if slices.Contains(w.families, family) && got[key] != v {
				w.t.Errorf("after %d requests: %s = %d, without a front %d", at, key, got[key], v)
			}
		}
		for key, v := range map[string]int64{
			"allocation.all.current": count, "allocation.all.allocated": mallocs, "allocation.all.freed": frees,
		} {
			if got[key] != v {
				w.t.Errorf("after %d requests: %s = %d, the model says %d", at, key, got[key], v)
			}
		}
		if r := got["requested_bytes.all.current"]; r < requested || got["active.all.current"] == count && r != requested {
			w.t.Errorf("after %d requests: requested %d, the model says %d", at, r, requested)
		}
		if got["reserved_bytes.all.current"] < got["active_bytes.all.current"] {
			w.t.Errorf("after %d requests: less reserved than active", at)
		}
		w.reserved = max(w.reserved, got["reserved_bytes.all.peak"])
		w.reserved0 = max(w.reserved0, want["reserved_bytes.all.peak"])
	}, "stats 0")
	w.say(func(text string) { w.compareLayout(live, text) }, "snapshot 0")
}

// compareLayout wants exactly the live blocks to be allocated.
func (w *twin) compareLayout(live []slot, text string) {
	type block struct {
		Address       uint64 `json:"address"`
		Size          uint64 `json:"size"`
		RequestedSize uint64 `json:"requested_size"`
		State         string `json:"state"`
		stream        uint64
	}
	s := decode[struct {
		Segments []struct {
			Stream uint64  `json:"stream"`
			Blocks []block `json:"blocks"`
		} `json:"segments"`
	}](w.t, text)
	allocated := map[uint64]block{}
	end := uint64(0)
	for _, seg := range s.Segments {
		for _, b := range seg.Blocks {
			if b.Address < end {
				w.t.Errorf("blocks overlap at %#x", b.Address)
			}
			end = b.Address + b.Size
			if b.State == "active_allocated" {
				b.stream = seg.Stream
				allocated[b.Address] = b
			}
		}
	}
	for _, l := range live {
		b, ok := allocated[w.addrs[l.n]]
		if !ok || b.RequestedSize != l.size || b.Size < l.size || b.stream != l.stream {
			w.t.Errorf("the block of %d bytes on stream %d at %#x is not allocated so: %+v", l.size, l.stream, w.addrs[l.n], b)
		}
		delete(allocated, w.addrs[l.n])
	}
	for _, b := range allocated {
		w.t.Errorf("nobody uses the block of %d bytes at %#x", b.Size, b.Address)
	}
}

func (w *twin) must(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestDifferential performs random programs with the front on and off. What
// the caller sees must be what an engine without a front shows.
func TestDifferential(t *testing.T) {
	short.Skip(t)
	counted := []string{"allocation", "active", "requested_bytes"}
	exact := append([]string{"allocated_bytes", "active_bytes"}, counted...)
	for _, c := range []struct {
		conf     string
		families []string
	}{
		{"expandable_segments:True", exact},
		{"expandable_segments:True,front_cache:False", exact},
		// Without expandable segments a large block may be larger than the
		// request, and by how much depends on which one is found.
		{"expandable_segments:False", counted},
		{"expandable_segments:False,front_cache:False", exact},
		{"expandable_segments:False,max_split_size_mb:32", counted},
		{"expandable_segments:True,roundup_power2_divisions:4", exact},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s/%d", c.conf, seed), func(t *testing.T) {
				t.Parallel()
				cfg := defaults()
				if err := cfg.read(c.conf, false); err != nil {
					t.Fatal(err)
				}
				w := &twin{
					script: &script{t: t}, rng: rand.New(rand.NewPCG(seed, 7)), addrs: map[int]uint64{}, families: c.families,
					engine: alloc.New(sim.New(sim.Config{TotalMemory: 200 << 30, Started: true}), alloc.WithSettings(cfg.engine)),
				}
				for range 6000 {
					w.step()
				}
				w.compare()
				w.say(func(text string) {
					f := decode[frontState](t, text)
					if off := strings.Contains(c.conf, "front_cache:False"); off != (f.Hits == 0) || off != (f.Held == 0) {
						t.Errorf("%d hits, %d blocks held, front off: %v", f.Hits, f.Held, off)
					}
					t.Logf("%d hits, %d misses; peak of reserved %s, without a front %s",
						f.Hits, f.Misses, units.Size(uint64(w.reserved)), units.Size(uint64(w.reserved0)))
				}, "front 0")
				if said := w.run(confVariable+"="+c.conf, memoryVariable+"=200GiB"); said != "" {
					t.Errorf("standard error: %s", said)
				}
				if w.reserved > w.reserved0*11/10 {
					t.Errorf("peak of reserved %s, without a front %s", units.Size(uint64(w.reserved)), units.Size(uint64(w.reserved0)))
				}
			})
		}
	}
}
