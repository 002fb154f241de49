package settings_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

const mib = 1 << 20

// values has each kind of value of each key.
var values = map[string][]string{
	"large_segment_size_mb":             {"12", "32", "-1"},
	"max_split_size_mb":                 {"20", "32", "-1"},
	"max_non_split_rounding_mb":         {"20", "64", "-1"},
	"garbage_collection_threshold":      {"1e-9", "0.5", "0.999"},
	"roundup_power2_divisions":          {"1", "8", "9223372036854775808", "[1:2,4:4,32:8,>:16]", "[>:0]"},
	"expandable_segments":               {"True", "False"},
	"pinned_use_background_threads":     {"True", "False"},
	"backend":                           {settings.Native, settings.CudaMallocAsync},
	"release_lock_on_cudamalloc":        {"True", "False"},
	"release_lock_on_hipmalloc":         {"True", "False"},
	"pinned_use_cuda_host_register":     {"True", "False"},
	"pinned_use_hip_host_register":      {"True", "False"},
	"pinned_num_register_threads":       {"1", "128"},
	"pinned_reserve_segment_size_mb":    {"1", "-1"},
	"graph_capture_record_stream_reuse": {"True", "False"},
	"per_process_memory_fraction":       {"0", "0.5", "1"},
}

// entry is a way to ask an allocator for memory.
type entry struct {
	malloc func(size, stream uint64) (uint64, error)
	free   func(addr uint64) error
	after  func(addr, stream uint64) error // frees what the stream still uses
}

var entries = []struct {
	name string
	of   func(a *alloc.Allocator) entry
}{
	{"locked", func(a *alloc.Allocator) entry {
		return entry{a.Malloc, a.Free, func(addr, stream uint64) error {
			return errors.Join(a.RecordStream(addr, stream), a.Free(addr))
		}}
	}},
	{"lent", func(a *alloc.Allocator) entry {
		give := func(addr uint64) error { _, err := a.Lender().Return(addr, ""); return err }
		return entry{
			func(size, stream uint64) (uint64, error) {
				l, err := a.Lender().Lend(size, stream, "")
				return l.Addr, err
			},
			give,
			func(addr, stream uint64) error { return errors.Join(a.RecordStream(addr, stream), give(addr)) },
		}
	}},
	{"serial", func(a *alloc.Allocator) entry {
		s := a.Serial()
		return entry{
			func(size, stream uint64) (uint64, error) { h, err := s.Malloc(size, stream); return s.Address(h), err },
			func(addr uint64) error { return s.Free(s.Find(addr)) },
			func(addr, stream uint64) error { return s.FreeAfter(s.Find(addr), stream) },
		}
	}},
}

// work uses every part of an allocator that settings change: requests of all
// sizes until memory is short, other streams, a limit, the release of the cache.
func work(a *alloc.Allocator, e entry) error {
	rng := rand.New(rand.NewPCG(1, 2))
	var live []uint64
	var failed error
	step := func(n int) {
		for range n {
			if len(live) > 0 && rng.IntN(5) < 2 {
				i := rng.IntN(len(live))
				addr := live[i]
				live = slices.Delete(live, i, i+1)
				if rng.IntN(4) == 0 {
					failed = errors.Join(failed, e.after(addr, 1))
				} else {
					failed = errors.Join(failed, e.free(addr))
				}
				continue
			}
			addr, err := e.malloc(1+rng.Uint64N(1<<(9+rng.IntN(17))), rng.Uint64N(2))
			var oom *alloc.OutOfMemoryError
			switch {
			case err == nil:
				live = append(live, addr)
			case !errors.As(err, &oom):
				failed = errors.Join(failed, err)
			}
		}
	}
	step(60)
	failed = errors.Join(failed, a.EmptyCache())
	a.SetLimit(96 * mib)
	step(60)
	for _, addr := range live {
		failed = errors.Join(failed, e.free(addr))
	}
	return errors.Join(failed, a.EmptyCache(), a.CheckInvariants())
}

// state is what a restored allocator begins with: one segment, partly in use.
func state(s settings.Settings) []alloc.Segment {
	addr, size := uint64(0x7e0000000000), uint64(64*mib)
	if s.ExpandableSegments {
		rules := alloc.RulesOf(s, pytorch.Default)
		addr, size = 0x400000000, 2*rules.Granule(true)
	}
	return []alloc.Segment{{
		Address: addr, TotalSize: size, Large: true, Expandable: s.ExpandableSegments,
		Blocks: []alloc.Block{{Address: addr + 4*mib, Size: 2 * mib, RequestedSize: 2 * mib, State: alloc.ActiveAllocated}},
	}}
}

// Every setting that is accepted can be run: through every entry, from the start
// or from a state, with and without a history, over every driver. What happens
// depends on none of these.
func TestEverySettingRuns(t *testing.T) {
	for _, name := range settings.Names() {
		if len(values[name]) == 0 {
			t.Errorf("%s has no values in this test", name)
		}
		for _, v := range values[name] {
			for _, more := range []string{"", ",expandable_segments:True"} {
				conf := name + ":" + v + more
				t.Run(conf, func(t *testing.T) { everyWay(t, conf) })
			}
		}
	}
}

func everyWay(t *testing.T, conf string) {
	s, err := settings.Parse(conf)
	if err != nil {
		t.Fatal(err)
	}
	absurd := s.ExpandableSegments && s.LargeSegmentSize > 1<<60 // granules that no device has: requests fail
	for _, restored := range []bool{false, true} {
		refused := absurd && restored // there is no such state
		run := func(way int, d driver.Driver, history bool, observe func(alloc.Event)) alloc.Stats {
			a := alloc.New(d, alloc.WithSettings(s), alloc.WithObserver(observe))
			var err error
			if restored {
				err = a.Restore(state(s))
			}
			if history {
				a.RecordHistory(alloc.HistoryOptions{MaxEntries: 100})
			}
			if err = errors.Join(err, work(a, entries[way].of(a))); (err != nil) != refused {
				t.Fatalf("%T, %s, restored %v, history %v: %v", d, entries[way].name, restored, history, err)
			}
			return a.Stats()
		}
		device := func() driver.Driver { return sim.New(sim.Config{TotalMemory: 128 * mib}) }
		var trace recorded.List
		want := run(0, device(), false, func(e alloc.Event) {
			trace = append(trace, recorded.Event{Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Op: -1})
		})
		for way := range entries {
			for _, history := range []bool{false, true} {
				check := func(d driver.Driver, observe func(alloc.Event)) {
					if got := run(way, d, history, observe); got != want {
						t.Errorf("%T, %s, restored %v, history %v: %+v\nlocked %+v", d, entries[way].name, restored, history, got, want)
					}
				}
				check(device(), nil)
				if !absurd { // nobody has recorded them
					r := recorded.New(recorded.Config{TotalMemory: 128 * mib, Events: trace})
					check(r, func(alloc.Event) { r.Advance() })
				}
				if restored { // real memory cannot be taken over
					continue
				}
				h := host.New(host.Config{Memory: 128 * mib})
				_, err := h.NewStream()
				run(way, h, history, nil) // events end when they do: statistics vary
				if err := errors.Join(err, h.Close()); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
