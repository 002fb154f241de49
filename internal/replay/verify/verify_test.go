package replay

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func verifyFile(t *testing.T, path string) *Result {
	t.Helper()
	f, err := snapshot.Open(t.Context(), path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := VerifyTrace(t.Context(), f.Traces[0])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rebuilt are the files whose recording did not begin with the process.
var rebuilt = []string{"midrun", "ring", "stateonly"}

// TestSnapshotsAreIdentical replays every snapshot of a real workload from the
// file alone.
func TestSnapshotsAreIdentical(t *testing.T) {
	files, err := filepath.Glob("../../testdata/*/*.pickle.gz")
	if err != nil || len(files) != 53 {
		t.Fatalf("%d snapshots, want 53 (%v)", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pickle.gz")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := verifyFile(t, file)
			if !r.Identical || !r.SegmentsIdentical || r.IdenticalEvents != r.Events {
				t.Fatalf("%d of %d events identical: %v", r.IdenticalEvents, r.Events, r.First)
			}
			want := StartRecorded
			if slices.Contains(rebuilt, name) {
				want = StartRebuilt
			}
			if r.Start != want {
				t.Errorf("start %s, want %s", r.Start, want)
			}
		})
	}
}

// TestLimitIsInferred: the range found in the file holds the limit that the
// run really had (MiB).
func TestLimitIsInferred(t *testing.T) {
	for name, mib := range map[string]uint64{
		"gpt2_fixed": 7609, "gpt2_varlen": 16594, "llama_ckpt": 6667, "resnet_batches": 5775, "unet_multires": 10213,
		"streams_graphs": 273, "serve_generate": 2426, "moe_train": 4633, "leak_graph": 1236, "ckpt_spike": 2608,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := verifyFile(t, "../../testdata/snapshots/"+name+"-tight-default.pickle.gz")
			// The limit was set as a fraction of the device, so it is a little off.
			limit := mib << 20
			if r.Limit.Min > limit || r.Limit.Max+1<<10 < limit {
				t.Errorf("limit between %d and %d, was %d", r.Limit.Min, r.Limit.Max, limit)
			}
		})
	}
}

// TestStatsOfSnapshots: the replay of a complete recording ends with the
// statistics that the process itself reported, all 122; of an incomplete one
// with the same currents.
func TestStatsOfSnapshots(t *testing.T) {
	files, err := filepath.Glob("../../testdata/variety/*.side.json")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d side files, want 13 (%v)", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".side.json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var side struct {
				Stats map[string]int64 `json:"memory_stats"`
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &side); err != nil {
				t.Fatal(err)
			}
			if len(side.Stats) != 122 {
				t.Fatalf("%d statistics in the file", len(side.Stats))
			}
			r := verifyFile(t, strings.TrimSuffix(file, ".side.json")+".pickle.gz")
			for _, key := range slices.Sorted(maps.Keys(side.Stats)) {
				complete := !slices.Contains(rebuilt, name)
				if (complete || strings.HasSuffix(key, ".current")) && r.Stats[key] != side.Stats[key] {
					t.Errorf("%s is %d, want %d", key, r.Stats[key], side.Stats[key])
				}
			}
		})
	}
}

// asTrace is what a snapshot of a recorded run would have told: the events and
// the final segments, without the operations, the limit or the pools of events.
func asTrace(t *testing.T, rec *Recording) *trace.Trace {
	t.Helper()
	tr := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
	for _, e := range rec.Trace {
		action, err := tr.Events.ActionNamed(e.Action)
		if err != nil {
			t.Fatal(err)
		}
		tr.Events.Append(trace.Event{Action: action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Time: trace.NoTime})
	}
	conf, err := settings.Parse(rec.Conf)
	if err != nil {
		t.Fatal(err)
	}
	tr.Settings = trace.Settings{Known: true, Parsed: conf, Conf: rec.Conf}
	for i := range rec.Segments {
		g := &rec.Segments[i]
		s := trace.Segment{
			Address: g.Address, TotalSize: g.TotalSize, AllocatedSize: g.AllocatedSize, ActiveSize: g.ActiveSize,
			RequestedSize: g.RequestedSize, Stream: g.Stream, Type: g.Type(), Pool: g.Pool, HasPool: true, Expandable: g.Expandable,
		}
		for _, b := range g.Blocks {
			s.Blocks = append(s.Blocks, trace.Block{Address: b.Address, Size: b.Size, RequestedSize: b.RequestedSize, State: b.State.String()})
		}
		tr.Segments = append(tr.Segments, s)
	}
	return tr
}

// TestRecordingsAsSnapshots replays recordings as if only a snapshot had been
// kept. All must come out identical but those that use private pools at random
// or change settings at run time, of which a snapshot tells too little.
func TestRecordingsAsSnapshots(t *testing.T) {
	var files []string
	for _, pattern := range []string{"oracle/*", "verify/recordings/p[el]*", "verify/recordings/*oompool*"} {
		more, err := filepath.Glob("../../testdata/" + pattern + ".json.gz")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	if len(files) != 54+16+18 {
		t.Fatalf("%d recordings", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec, err := Load(t.Context(), File(file))
			if err != nil {
				t.Fatal(err)
			}
			r, err := VerifyTrace(t.Context(), asTrace(t, rec))
			if err != nil {
				t.Fatal(err)
			}
			if !r.Identical {
				t.Errorf("%d of %d events identical: %v", r.IdenticalEvents, r.Events, r.First)
			}
		})
	}
}
