package stats

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

func collect(t *testing.T, name string, change func(*snapshot.File)) *Snapshot {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "..", "testdata", name), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(f)
	}
	s, err := NewSnapshot(t.Context(), f, Options{Device: input.AnyDevice})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Snapshot) missingText() string {
	var lines []string
	for _, m := range s.Missing {
		lines = append(lines, m.What+": "+m.Text)
	}
	return strings.Join(lines, "\n")
}

func TestSnapshotOfARunThatDied(t *testing.T) {
	s := collect(t, "snapshots/gpt2_fixed-tight-default.pickle.gz", nil)
	if s.Replay == nil || !s.Replay.Identical || s.Events != 5737 || s.Steps.Complete != 1 {
		t.Fatalf("%+v", s)
	}
	if len(s.OOMs) != 1 {
		t.Fatalf("%+v", s.OOMs)
	}
	// The file was written when the request failed, so both tell the same.
	o, m := s.OOMs[0], s.Memory
	if *o.Event != 5736 || o.ReservedBytes != *m.Reserved.Now || *o.AllocatedBytes != *m.Allocated.Now || *o.FreeBytes != m.FreeBytes || *o.LargestFreeBytes != m.LargestFreeBytes {
		t.Errorf("%+v\n%+v", o, m)
	}
	if *o.Step != 2 || o.Annotation != nil || len(o.Frames) == 0 || o.Site.String() != "functional.py:3504 cross_entropy < train.py:39 lm_steps" {
		t.Errorf("%+v", o)
	}
	if len(s.Holders) != 10 || s.HolderCount < 20 || s.Holders[0].Bytes < s.Holders[9].Bytes {
		t.Errorf("%d of %d: %+v", len(s.Holders), s.HolderCount, s.Holders)
	}
	sum := uint64(0)
	for _, g := range s.Segments {
		sum += g.ReservedBytes
	}
	if sum != *m.Reserved.Now {
		t.Errorf("the groups have %d bytes of %d", sum, *m.Reserved.Now)
	}
}

func TestMissing(t *testing.T) {
	only := func(change func(*trace.Trace)) func(*snapshot.File) {
		return func(f *snapshot.File) { change(f.Traces[0]) }
	}
	tests := []struct {
		name, file string
		change     func(*snapshot.File)
		want       []string // in this order
		not        []string
	}{
		{"nothing", "snapshots/resnet_batches-default.pickle.gz", nil, nil, []string{"start", "settings", "replay", "times"}},
		{"the beginning", "variety/midrun.pickle.gz", nil, []string{"start: the beginning: the trace starts mid-run", "earlier peaks are lost"}, []string{"replay"}},
		{"the oldest events", "variety/ring.pickle.gz", nil, []string{"start: the beginning: the ring of events overflowed"}, nil},
		{"the oldest events, told", "variety/ring.pickle.gz", func(f *snapshot.File) { f.Extra = trace.Extra{{Name: "trace_alloc_overflowed", Value: true}} }, []string{"start: the oldest events: the file says"}, []string{"earlier peaks"}},
		{"all stacks", "variety/nocontext.pickle.gz", nil, []string{"frames: call stacks: who allocated what is unknown"}, nil},
		{"events", "variety/stateonly.pickle.gz", nil, []string{"events: events: recording was off"}, []string{"frames", "start", "replay"}},
		{"pools", "variety/graphs.pickle.gz", nil, []string{"pool_ids: pools of events"}, nil},
		{"settings", "variety/graphs.pickle.gz", only(func(t *trace.Trace) { t.Settings = trace.Settings{Parsed: settings.Default()} }), []string{"settings: allocator settings: the defaults"}, nil},
		{"times", "variety/graphs.pickle.gz", only(func(t *trace.Trace) {
			for i := range t.Events.Len() {
				t.Events.Time.Set(i, trace.NoTime)
			}
		}), []string{"times: times"}, nil},
		{"segments", "variety/expand.pickle.gz", only(func(t *trace.Trace) { t.Segments = nil }), []string{"segments: segments"}, nil},
		{"requests", "variety/graphs.pickle.gz", only(func(t *trace.Trace) {
			for i := range t.Segments {
				for j := range t.Segments[i].Blocks {
					t.Segments[i].Blocks[j].RequestedSize = 0
				}
			}
		}), []string{"requested_sizes: requested sizes"}, nil},
		{"a replay", "variety/graphs.pickle.gz", only(func(t *trace.Trace) { t.Events.Size.Set(1, 7<<30) }), []string{"replay: peaks of allocated and active: the replay diverges"}, nil},
		{"order", "variety/graphs.pickle.gz", only(func(t *trace.Trace) { t.Events.Time.Set(5, 1) }), []string{"order: order: 1 events"}, nil},
		{"the end", "snapshots/leak_graph-default.pickle.gz", func(f *snapshot.File) {
			f.Truncated = &snapshot.Truncation{ReadBytes: 1000, Where: "in device_traces"}
			f.Traces[0].Partial = true
			f.Traces[0].Events.Cut(5000)
		}, []string{"truncated: the end of the file: it stops in device_traces; the state at the end is complete"}, []string{"start", "replay"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := collect(t, tt.file, tt.change).missingText()
			at := 0
			for _, w := range tt.want {
				i := strings.Index(got[at:], w)
				if i < 0 {
					t.Fatalf("no %q in\n%s", w, got)
				}
				at += i
			}
			for _, n := range tt.not {
				if strings.Contains(got, n+": ") || strings.Contains(got, n+" are") {
					t.Errorf("%q in\n%s", n, got)
				}
			}
		})
	}
}

// Without an identical replay there are no peaks by block size; the others
// stay.
func TestPeaksWithoutReplay(t *testing.T) {
	s := collect(t, "variety/graphs.pickle.gz", func(f *snapshot.File) { f.Traces[0].Events.Size.Set(1, 7<<30) })
	if m := s.Memory; m.Allocated.Peak != nil || m.Active.At != nil || m.Reserved.Peak == nil || m.Allocated.Now == nil || s.Fragmentation.AtPeak != nil {
		t.Errorf("%+v", m)
	}
}

func TestSettingsExplained(t *testing.T) {
	short.Skip(t)
	s := collect(t, "variety/expand_serve.pickle.gz", nil).Settings
	want := []Setting{
		{"garbage_collection_threshold", "0.8", "above 80 % of the memory limit old cached blocks are freed"},
		{"expandable_segments", "True", "segments grow and shrink in place, by mapping memory"},
	}
	if diff := cmp.Diff(want, s.NonDefault); diff != "" || *s.Conf != "expandable_segments:True,garbage_collection_threshold:0.8" {
		t.Errorf("%v\n%s", *s.Conf, diff)
	}
	// Every key has a meaning.
	all := "large_segment_size_mb:64,max_split_size_mb:128,max_non_split_rounding_mb:128,garbage_collection_threshold:0.5," +
		"roundup_power2_divisions:[256:1,>:8],expandable_segments:True,pinned_use_background_threads:True,backend:cudaMallocAsync," +
		"release_lock_on_cudamalloc:True,pinned_use_cuda_host_register:True,pinned_num_register_threads:4,pinned_reserve_segment_size_mb:7," +
		"graph_capture_record_stream_reuse:True,per_process_memory_fraction:0.5"
	parsed, err := settings.Parse(all)
	if err != nil {
		t.Fatal(err)
	}
	explained := explain(parsed)
	if len(explained) != 14 {
		t.Errorf("%d settings of 14: %+v", len(explained), explained)
	}
	for _, s := range explained {
		if s.Meaning == "" || !strings.Contains(all, s.Key+":"+s.Value) {
			t.Errorf("%+v", s)
		}
	}
}

// Host memory is another allocator's: it is not replayed.
func TestHostMemory(t *testing.T) {
	s := collect(t, "variety/graphs.pickle.gz", func(f *snapshot.File) {
		f.Host, f.Traces = f.Traces[0], nil
		f.Host.Host = true
	})
	if s.Device != nil || !s.Host || s.Replay != nil || s.Memory.Reserved.Peak == nil || !strings.Contains(s.missingText(), "host memory has another allocator") {
		t.Errorf("%+v", s)
	}
}

func TestDump(t *testing.T) {
	d, err := stats.Parse([]byte(`{"reserved_bytes.all.current": 1000, "allocated_bytes.all.current": 750, "active_bytes.all.current": 800,
		"requested_bytes.all.current": 600, "inactive_split_bytes.all.current": 50, "reserved_bytes.all.peak": 0, "allocated_bytes.all.peak": 0}`))
	if err != nil {
		t.Fatal(err)
	}
	got := NewDump(d)
	want := DumpFragmentation{ReservedUnallocated: &Share{0.25, 0.25, 0.25}, InactiveSplit: &Share{0.05, 0.05, 0.05}, Internal: &Share{0.25, 0.25, 0.25}}
	if diff := cmp.Diff(want, got.Fragmentation); diff != "" {
		t.Error(diff)
	}
	if len(got.Missing) != 122-7 || got.Device != nil || !got.Exact {
		t.Errorf("%d missing, %+v", len(got.Missing), got)
	}
}

func TestMessage(t *testing.T) {
	all, err := message.Parse("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 10.00 GiB total capacity; 6.00 GiB already allocated; 5.00 MiB free; 8.00 GiB reserved in total by PyTorch)")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMessage(all[0])
	if *m.Device != 1 || m.ReservedComputed || !m.UnallocatedComputed || m.Unallocated.Mid != 2<<30 || m.ReservedUnallocated.Value != 0.25 {
		t.Errorf("%+v", m)
	}
	if s := m.ReservedUnallocated; s.Exact() || s.Low > 0.25 || s.High < 0.25 || s.High-s.Low > 0.01 {
		t.Errorf("%+v", s)
	}
}

// Peaks of a file that ends within its events are no lower than what its state
// shows, and say that they are bounds.
func TestPeaksOfACutFile(t *testing.T) {
	data, err := os.ReadFile("../../../testdata/snapshots/gpt2_varlen-tight-default.pickle.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		bytes int
		later bool // the state shows more than the events
	}{{len(whole) / 2, true}, {len(whole) - 20000, true}, {len(whole), false}} {
		f, err := snapshot.Read(t.Context(), "cut.pickle", bytes.NewReader(whole[:tt.bytes]), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSnapshot(t.Context(), f, Options{Device: input.AnyDevice})
		if err != nil {
			t.Fatal(err)
		}
		for name, l := range map[string]Level{"reserved": s.Memory.Reserved, "allocated": s.Memory.Allocated, "active": s.Memory.Active, "requested": s.Memory.Requested} {
			if l.Now == nil || l.Peak == nil || *l.Peak < *l.Now {
				t.Errorf("%d bytes: %s is %v at the end, at most %v", tt.bytes, name, l.Now, l.Peak)
			}
			if l.AtLeast != (tt.bytes < len(whole)) {
				t.Errorf("%d bytes: %s at least: %v", tt.bytes, name, l.AtLeast)
			}
			if (l.At == nil) != (*l.Peak == *l.Now && tt.later) {
				t.Errorf("%d bytes: %s is %d at %+v", tt.bytes, name, *l.Peak, l.At)
			}
		}
		if f := s.Fragmentation; tt.later && s.Memory.Reserved.At == nil && *f.AtPeak != *f.ReservedUnallocated {
			t.Errorf("%d bytes: %v at the peak, which is the end: %v", tt.bytes, *f.AtPeak, *f.ReservedUnallocated)
		}
	}
}
