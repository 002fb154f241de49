package verify

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func verifyFile(t *testing.T, path string) *Verified {
	t.Helper()
	f, err := snapshot.Open(t.Context(), path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := Run(t.Context(), f.Traces[0], Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rebuilt are the files whose recording did not begin with the process.
var rebuilt = []string{"midrun", "ring", "stateonly", "batches-plain", "batches-empty", "cache-plain", "cache-empty", "pieces-plain", "pieces-empty"}

// TestSnapshotsAreIdentical replays every snapshot of a real workload from the
// file alone.
func TestSnapshotsAreIdentical(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/*/*.pickle.gz")
	if err != nil || len(files) < 123 {
		t.Fatalf("%d snapshots, want 123 or more (%v)", len(files), err)
	}
	for _, file := range short.Files(t, files, 12) {
		name := strings.TrimSuffix(filepath.Base(file), ".pickle.gz")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := verifyFile(t, file)
			r := v.Result
			if !r.Identical || !r.SegmentsIdentical || r.IdenticalEvents != r.Events {
				t.Fatalf("%d of %d events identical: %v", r.IdenticalEvents, r.Events, r.First)
			}
			want := start.Recorded
			if slices.Contains(rebuilt, name) {
				want = start.Rebuilt
			}
			if v.Start.Kind != want {
				t.Errorf("start %s, want %s", v.Start.Kind, want)
			}
		})
	}
}

// TestLimitIsInferred: the range found in the file holds the limit that the
// run really had (MiB).
func TestLimitIsInferred(t *testing.T) {
	short.Skip(t)
	for name, mib := range map[string]uint64{
		"gpt2_fixed": 7609, "gpt2_varlen": 16594, "llama_ckpt": 6667, "resnet_batches": 5775, "unet_multires": 10213,
		"streams_graphs": 273, "serve_generate": 2426, "moe_train": 4633, "leak_graph": 1236, "ckpt_spike": 2608,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := verifyFile(t, "../../../testdata/snapshots/"+name+"-tight-default.pickle.gz").Result
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
	files, err := filepath.Glob("../../../testdata/variety/*.side.json")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d side files, want 13 (%v)", len(files), err)
	}
	for _, file := range short.Some(files, 3) {
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
			r := verifyFile(t, strings.TrimSuffix(file, ".side.json")+".pickle.gz").Result
			for _, key := range slices.Sorted(maps.Keys(side.Stats)) {
				complete := !slices.Contains(rebuilt, name)
				if (complete || strings.HasSuffix(key, ".current")) && r.Stats[key] != side.Stats[key] {
					t.Errorf("%s is %d, want %d", key, r.Stats[key], side.Stats[key])
				}
			}
		})
	}
}
