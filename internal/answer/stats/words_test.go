package stats

import (
	"maps"
	"testing"

	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

const gib = 1 << 30

func problems(d *Dump) map[string]string {
	out := map[string]string{}
	for _, r := range d.Readings {
		out[r.Statistic] = r.Problem
	}
	return out
}

// The same gap between reserved and allocated is fine or not: it depends on
// whether memory was short.
func TestReadings(t *testing.T) {
	values := map[string]int64{
		"reserved_bytes.all.current": 41 * gib, "allocated_bytes.all.current": 23 * gib, "active_bytes.all.current": 23 * gib,
		"inactive_split_bytes.all.current": gib, "requested_bytes.all.current": 22 * gib,
		"num_ooms": 0, "num_alloc_retries": 0, "num_device_alloc": 50, "num_device_free": 0, "allocation.all.allocated": 1000,
	}
	calm := NewDump(&stats.Dump{Values: values})
	for statistic, problem := range problems(calm) {
		if problem != ProblemNo {
			t.Errorf("%s: %s", statistic, problem)
		}
	}
	if r := calm.Readings[len(calm.Readings)-2]; r.Value != "95.00 %" {
		t.Errorf("the hit rate: %+v", r)
	}

	short := maps.Clone(values)
	short["num_alloc_retries"], short["num_device_free"], short["active_bytes.all.current"], short["requested_bytes.all.current"] = 2, 7, 24*gib, 20*gib
	got := problems(NewDump(&stats.Dump{Values: short}))
	for statistic, want := range map[string]string{
		"num_ooms": ProblemNo, "num_alloc_retries": ProblemYes, "reserved - allocated": ProblemMaybe, "inactive_split_bytes.all.current": ProblemMaybe,
		"active - allocated": ProblemMaybe, "active - requested": ProblemMaybe, "num_device_free": ProblemMaybe,
	} {
		if got[statistic] != want {
			t.Errorf("%s: %q, want %q", statistic, got[statistic], want)
		}
	}
	if d := NewDump(&stats.Dump{Values: map[string]int64{}}); len(d.Readings) != 0 || d.EmptyCache != nil {
		t.Errorf("of nothing: %+v, %+v", d.Readings, d.EmptyCache)
	}
}

func TestEmptyCacheOfADump(t *testing.T) {
	d := NewDump(&stats.Dump{Values: map[string]int64{
		"reserved_bytes.all.current": 41 * gib, "active_bytes.all.current": 23 * gib, "inactive_split_bytes.all.current": gib,
	}})
	if r := d.EmptyCache; r == nil || r.Bytes != 17*gib || !r.UpperBound {
		t.Errorf("%+v", r)
	}
}

// What is said of a snapshot is what the engine would do, and what the formula of a
// dump says where it is exact.
func TestEmptyCacheOfASnapshot(t *testing.T) {
	for _, name := range []string{"snapshots/gpt2_varlen-default.pickle.gz", "snapshots/moe_train-default.pickle.gz"} {
		s := collect(t, name, nil)
		m := &s.Memory
		if want := *m.Reserved.Now - *m.Active.Now - m.InactiveSplitBytes; s.EmptyCache.Bytes != want || s.EmptyCache.UpperBound {
			t.Errorf("%s: %+v, want %d", name, s.EmptyCache, want)
		}
	}
	if s := collect(t, "variety/graphs.pickle.gz", nil); s.EmptyCache.Bytes != 36<<20 {
		t.Errorf("with private pools: %+v", s.EmptyCache)
	}
	if s := collect(t, "variety/graphs.pickle.gz", func(f *snapshot.File) { f.Traces[0].Segments = nil }); s.EmptyCache != nil {
		t.Errorf("without segments: %+v", s.EmptyCache)
	}
}

func TestTraffic(t *testing.T) {
	s := collect(t, "snapshots/gpt2_varlen-default.pickle.gz", nil)
	all := s.Traffic
	if all.Allocations != s.Actions["alloc"] || all.Frees != s.Actions["free_requested"] || all.Misses != s.Actions["segment_alloc"] {
		t.Errorf("%+v, want %v", all.Turnover, s.Actions)
	}
	var steps, streams Turnover
	add := func(to, n *Turnover) {
		to.Allocations += n.Allocations
		to.Frees += n.Frees
		to.AllocatedBytes += n.AllocatedBytes
		to.FreedBytes += n.FreedBytes
		to.Misses += n.Misses
		to.HitRate = all.HitRate
	}
	for i := range all.Steps {
		add(&steps, &all.Steps[i].Turnover)
	}
	for i := range all.Streams {
		add(&streams, &all.Streams[i].Turnover)
	}
	if steps != all.Turnover || streams != all.Turnover || len(all.Steps) != 15 || all.Steps[0].Step != nil || *all.Steps[14].Step != 14 {
		t.Errorf("by step %+v, by stream %+v, want %+v", steps, streams, all.Turnover)
	}
}
