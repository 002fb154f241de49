package message

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/internal/units"
)

const totalMemory = 150109880320 // of the recordings' device

// TestMeasured: the messages of recorded runs that died under a limit.
func TestMeasured(t *testing.T) {
	type measured struct {
		Name, Label, OOM string
		LimitMB          float64 `json:"limit_mb"`
	}
	n := 0
	for _, run := range jsonl.Must[measured](t, "../../testdata/measured.jsonl") {
		if run.OOM == "" {
			continue // it survived
		}
		n++
		all := parse(t, "torch.OutOfMemoryError: "+run.OOM)
		if len(all) != 1 {
			t.Fatalf("%s %s: %d messages", run.Name, run.Label, len(all))
		}
		o := all[0]
		recorded(t, o, run.OOM)
		if !o.LimitBytes.Contains(uint64(run.LimitMB * (1 << 20))) {
			t.Errorf("%s %s: limit %+v, was %v MiB", run.Name, run.Label, *o.LimitBytes, run.LimitMB)
		}
		if reserved, ok := o.Reserved(); !ok || reserved.Low > o.LimitBytes.High || reserved.Add(*o.TriedBytes).High < o.LimitBytes.Low {
			t.Errorf("%s %s: reserved %+v and %+v within the limit %+v", run.Name, run.Label, reserved, *o.TriedBytes, *o.LimitBytes)
		}
	}
	if n != 45 {
		t.Errorf("%d messages", n)
	}
}

// TestOracle: the messages of the recorded allocator under pressure.
func TestOracle(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "oracle", "pressure-*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		var rec struct {
			OOMMessages [][2]any `json:"oom_messages"`
		}
		if err := json.NewDecoder(z).Decode(&rec); err != nil {
			t.Fatal(err)
		}
		for _, m := range rec.OOMMessages {
			all := parse(t, m[1].(string))
			if len(all) != 1 {
				t.Fatalf("%s: %d messages", file, len(all))
			}
			recorded(t, all[0], m[1].(string))
			fraction := 0.02
			if !all[0].LimitBytes.Contains(uint64(fraction * totalMemory)) {
				t.Errorf("%s: limit %+v", file, *all[0].LimitBytes)
			}
		}
	}
}

// recorded checks what holds for every message of 2.11 under a limit.
func recorded(t *testing.T, o *OOM, text string) {
	t.Helper()
	if o.Backend != Native || o.Platform != "CUDA" || o.Version != "2.11+" || o.Device != 0 || o.Text != text || o.Line != 1 {
		t.Errorf("%s in %q", brief(o), o.Text)
	}
	if o.TriedBytes == nil || !o.TotalBytes.Contains(totalMemory) || o.FreeBytes == nil || o.AllocatedBytes == nil ||
		o.ReservedUnallocatedBytes == nil || o.LimitBytes == nil || !strings.Contains(o.Advice, "expandable_segments:True to avoid fragmentation. See") {
		t.Errorf("incomplete: %s", brief(o))
	}
	if o.TriedBytes.Mid%(2<<20) != 0 && o.TriedBytes.Mid < 1<<30 {
		t.Errorf("tried %d bytes, no segment size", o.TriedBytes.Mid)
	}
	self := 0
	for _, p := range o.Processes {
		if p.Self {
			self++
		}
	}
	if n := strings.Count(text, " memory in use."); self != 1 || len(o.Processes) != n {
		t.Errorf("%d processes of %d, %d of them its own", len(o.Processes), n, self)
	}
}

// TestAgainstStats: the message's numbers are those of memory_stats() at the OOM.
func TestAgainstStats(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "stats", "testdata", "expand_tight.side.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recording struct {
		Message string
		Stats   map[string]int64 `json:"memory_stats"`
	}
	if err := json.Unmarshal(data, &recording); err != nil {
		t.Fatal(err)
	}
	all := parse(t, string(data)) // as it stands in the file, and nothing else
	if len(all) != 1 {
		t.Fatalf("%d messages", len(all))
	}
	o := all[0]
	allocated := uint64(recording.Stats["allocated_bytes.all.current"])
	reserved := uint64(recording.Stats["reserved_bytes.all.current"])
	if !o.AllocatedBytes.Contains(allocated) || !o.ReservedUnallocatedBytes.Contains(reserved-allocated) {
		t.Errorf("%s, but allocated %d, reserved %d", brief(o), allocated, reserved)
	}
	if r, ok := o.Reserved(); !ok || !r.Contains(reserved) {
		t.Errorf("reserved %+v, was %d", r, reserved)
	}
	if r, ok := o.Unallocated(); !ok || !r.Contains(reserved-allocated) {
		t.Errorf("unallocated %+v, was %d", r, reserved-allocated)
	}
}

func TestDerived(t *testing.T) {
	old := parse(t, "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.71 GiB already allocated; 5.81 MiB free; 9.87 GiB reserved in total by PyTorch)")[0]
	gib := func(r units.Range) float64 { return float64(r.Mid) / (1 << 30) }
	if r, ok := old.Reserved(); !ok || gib(r) < 9.86 || gib(r) > 9.88 {
		t.Errorf("reserved %+v", r)
	}
	if r, ok := old.Unallocated(); !ok || gib(r) < 0.15 || gib(r) > 0.17 || r.Exact() {
		t.Errorf("unallocated %+v", r)
	}
	none := parse(t, "CUDA error: out of memory")[0]
	if _, ok := none.Reserved(); ok {
		t.Error("reserved from nothing")
	}
	if _, ok := none.Unallocated(); ok {
		t.Error("unallocated from nothing")
	}
}
