package verify

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// engineRun is a random program on a simulated device that runs out of memory:
// all that a snapshot does not say, and the truth to compare with.
type engineRun struct {
	memory   uint64
	conf     string
	fraction float64
	streams  uint64
	late     bool // history begins amid the run
	ring     int  // so many events are kept; 0: all
	ends     bool // with a request that fails
	waits    bool // other streams use blocks, and the cache is emptied
	seed     uint64
}

func (m engineRun) String() string {
	return fmt.Sprintf("%dMiB,%s,fraction=%v,streams=%d,late=%v,ring=%d,ends=%v,waits=%v,seed=%d",
		m.memory>>20, m.conf, m.fraction, m.streams, m.late, m.ring, m.ends, m.waits, m.seed)
}

// limit returns the cap that was in force, 0 for none.
func (m engineRun) limit(t *testing.T) uint64 {
	t.Helper()
	fraction := m.fraction
	if fraction == 1 {
		fraction = m.settings(t).PerProcessMemoryFraction
	}
	if fraction == 1 {
		return 0
	}
	return uint64(fraction * float64(m.memory))
}

func (m engineRun) settings(t *testing.T) settings.Settings {
	t.Helper()
	s, err := settings.Parse(m.conf)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// snapshot runs the program and reads back what it wrote.
func (m engineRun) snapshot(t *testing.T) *trace.Trace {
	t.Helper()
	a := alloc.New(sim.New(sim.Config{TotalMemory: m.memory, Started: true}), alloc.WithSettings(m.settings(t)))
	must := func(err error) {
		if err != nil {
			t.Fatalf("%v: %v", m, err)
		}
	}
	if m.fraction < 1 {
		must(a.SetMemoryFraction(m.fraction))
	}
	r := rand.New(rand.NewPCG(m.seed, 1))
	var live []uint64
	const calls, late = 600, 200
	for i := range calls {
		if i == 0 && !m.late || i == late && m.late {
			a.RecordHistory(alloc.HistoryOptions{MaxEntries: m.ring})
		}
		if r.IntN(5) < 3 || len(live) == 0 {
			size := 1 + r.Uint64N(1<<(9+r.IntN(bits.Len64(m.memory)-12)))
			addr, err := a.Malloc(size, r.Uint64N(m.streams))
			if err == nil {
				live = append(live, addr)
			} else if m.ends && i > calls/2 {
				break
			}
			continue
		}
		n := r.IntN(len(live))
		if m.waits && r.IntN(4) == 0 {
			must(a.RecordStream(live[n], 77))
		}
		if m.waits && r.IntN(60) == 0 {
			must(a.EmptyCache())
		}
		must(a.Free(live[n]))
		live = slices.Delete(live, n, n+1)
	}
	var file bytes.Buffer
	must(snapshot.WritePickle(&file, snapshot.FromEngine(a.Snapshot())))
	f, err := snapshot.Read(t.Context(), m.String(), &file, snapshot.Options{})
	must(err)
	return f.Traces[0]
}

// engineRuns is every combination of what matters, with a seed each.
func engineRuns() []engineRun {
	var out []engineRun
	for _, memory := range []uint64{256 << 20, 1 << 30, 4 << 30, 80 << 30} {
		for _, expandable := range []string{"expandable_segments:True", "expandable_segments:False"} {
			for _, more := range []string{
				"", ",max_split_size_mb:64", ",garbage_collection_threshold:0.6", ",roundup_power2_divisions:8", ",per_process_memory_fraction:0.6",
			} {
				for n := range 16 {
					m := engineRun{
						memory: memory, conf: expandable + more, fraction: 1, streams: 1 + 2*uint64(n&1),
						late: n&2 != 0, ends: n&8 != 0, waits: n%3 == 1, seed: uint64(n / 5),
					}
					if n&4 != 0 {
						m.fraction = 0.5
					}
					if n%7 == 5 {
						m.ring = 300
					}
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// A snapshot that the engine writes on a small device is reproduced, whatever
// its settings and whether a limit or the device refused; what is found out about
// the limit is true; and the program in it, run under the conditions that were
// in force, ends as it did.
func TestSmallDevices(t *testing.T) {
	failed, limits := 0, 0
	runs := engineRuns()
	for _, m := range short.Some(runs, len(runs)/5) {
		file := m.snapshot(t)
		v, err := Run(t.Context(), file, Options{})
		if err != nil {
			t.Errorf("%v: %v", m, err)
			continue
		}
		p, r := v.Program(), v.Result
		collects := p.Settings.GarbageCollectionThreshold > 0 && !p.Settings.ExpandableSegments
		if !r.Identical || !r.SegmentsIdentical {
			// How long cached segments had been unused is not in a file that begins
			// amid the run. It has to say so.
			if collects && r.Start == start.Rebuilt && r.First.Event < r.Events &&
				slices.ContainsFunc(r.Notes, func(s string) bool { return strings.Contains(s, "garbage collector") }) {
				continue
			}
			t.Errorf("%v: %d of %d events identical; %v", m, r.IdenticalEvents, r.Events, r.First)
			continue
		}
		limit := m.limit(t)
		ooms := r.Stats["num_ooms"]
		failed += int(min(ooms, 1))
		switch {
		case limit != 0 && (limit < r.Limit.Min || r.Limit.Max != 0 && limit > r.Limit.Max):
			t.Errorf("%v: the limit is %d, found %+v", m, limit, *r.Limit)
		case limit == 0 && ooms > 0 && r.Limit.Max != 0:
			t.Errorf("%v: there is no limit and the device failed %d requests, found %+v", m, ooms, *r.Limit)
		case limit != 0 && ooms > 0 && r.Limit.Max != 0:
			limits++
		}
		if r.Start == start.Rebuilt && isRelease(file.Events.Action.At(0)) {
			continue // it begins amid a flush, for a request that was refused with more reserved
		}
		o, err := p.Run(t.Context(), replay.Conditions{Settings: p.Settings, Limit: limit, DeviceMemory: m.memory, SkipOOM: true})
		if err != nil {
			t.Errorf("%v: %v", m, err)
			continue
		}
		retries := o.Retries
		if collects { // a collection may look like a flush
			retries = r.Stats["num_alloc_retries"]
		}
		for _, c := range []struct {
			what      string
			got, want int64
		}{
			{"peak reserved", int64(o.Reserved.Bytes), r.Stats["reserved_bytes.all.peak"]},
			{"reserved", o.Stats.ReservedBytes.All.Current, r.Stats["reserved_bytes.all.current"]},
			{"peak allocated", int64(o.Allocated.Bytes), r.Stats["allocated_bytes.all.peak"]},
			{"failed requests", o.OOMs, ooms},
			{"retries", retries, r.Stats["num_alloc_retries"]},
		} {
			if c.got != c.want {
				t.Errorf("%v: run again: %s %d, want %d", m, c.what, c.got, c.want)
			}
		}
	}
	if failed < short.Times(400) || limits < short.Times(200) {
		t.Errorf("%d runs fail, of %d a limit shows: too few to tell anything", failed, limits)
	}
}
