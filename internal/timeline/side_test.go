package timeline

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// memoryStats reads the memory_stats() that PyTorch gave when the snapshot was
// taken.
func memoryStats(t *testing.T, file string) map[string]int64 {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var side struct {
		Stats map[string]int64 `json:"memory_stats"`
	}
	if err := json.Unmarshal(data, &side); err != nil {
		t.Fatal(err)
	}
	return side.Stats
}

// The sums at the end are PyTorch's own, and so are the peaks if recording
// began with the process.
func TestAgainstMemoryStats(t *testing.T) {
	sides, err := filepath.Glob("../../testdata/variety/*.side.json")
	if err != nil || len(sides) < 10 {
		t.Fatalf("%v, %v", sides, err)
	}
	peaks := 0
	for _, side := range short.Some(sides, 4) {
		name := strings.TrimSuffix(filepath.Base(side), ".side.json")
		t.Run(name, func(t *testing.T) {
			want := memoryStats(t, side)
			tr := open(t, "variety/"+name+".pickle.gz")
			check := func(key string, got uint64) {
				t.Helper()
				if int64(got) != want[key] {
					t.Errorf("%s: got %d, want %d", key, got, want[key])
				}
			}
			s := NewState(tr)
			check("reserved_bytes.all.current", s.Reserved)
			check("allocated_bytes.all.current", s.Allocated)
			check("active_bytes.all.current", s.Active)
			check("requested_bytes.all.current", s.Requested)
			check("inactive_split_bytes.all.current", s.InactiveSplit)
			check("active.all.current", uint64(s.Blocks))

			l := New(tr, exact(t, tr))
			if l.Start.Kind != start.Recorded || tr.Events.Len() == 0 {
				return
			}
			if !l.Exact {
				t.Fatal("not replayed identically")
			}
			p := l.Peaks()
			check("reserved_bytes.all.peak", p.Reserved.Value)
			check("allocated_bytes.all.peak", p.Allocated.Value)
			check("active_bytes.all.peak", p.Active.Value)
			check("requested_bytes.all.peak", p.Requested.Value)
			check("active.all.peak", p.Blocks.Value)
			check("num_ooms", uint64(len(p.OOMs)))
			peaks++
		})
	}
	if peaks < short.Times(8) {
		t.Errorf("the peaks of only %d files were compared", peaks)
	}
}

// A peak is where the total is reached first, with the totals of that moment.
func TestPeaksAreMoments(t *testing.T) {
	tr := open(t, "variety/expand_tight.pickle.gz")
	l := New(tr, exact(t, tr))
	p := l.Peaks()
	c := l.Cursor()
	for c.Next() {
		if c.Totals.Allocated >= p.Allocated.Value && c.Index < p.Allocated.Event {
			t.Fatalf("event %d has %d already", c.Index, c.Totals.Allocated)
		}
		if c.Index == p.Allocated.Event && (c.Totals != p.Allocated.Totals || c.Totals.Allocated != p.Allocated.Value || c.Event.Time != p.Allocated.Time) {
			t.Errorf("event %d: %+v, the peak says %+v", c.Index, c.Totals, p.Allocated)
		}
	}
	if len(p.OOMs) != 1 || p.OOMs[0].Index != tr.Events.Len()-1 || p.Actions["oom"] != 1 {
		t.Errorf("failed requests: %+v, %v", p.OOMs, p.Actions)
	}
}
