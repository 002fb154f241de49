package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func open(t *testing.T, name string) *snapshot.File {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "..", "testdata", name), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func checked(t *testing.T, tr *trace.Trace) *run.Checked {
	t.Helper()
	c, err := run.New(tr, nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func program(t *testing.T, name string) *run.Checked {
	t.Helper()
	return checked(t, open(t, name).Traces[0])
}

func setting(t *testing.T, conf string) Setting {
	t.Helper()
	s, err := ParseSetting(conf)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// question asks about the recorded conditions.
func question(p *run.Checked, settings ...Setting) Question {
	return Question{Settings: settings, Limit: LimitOf(p), Memory: MemoryOf(p)}
}

func ask(t *testing.T, p *run.Checked, q Question) *Answer {
	t.Helper()
	a, err := Ask(t.Context(), p, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The recorded settings, replayed on a simulated device, have the peaks that
// stats reads off the recording.
func TestRecordedPeaksAreThoseOfStats(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/variety/*.pickle.gz")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, name := range []string{"gpt2_varlen-tight", "streams_graphs", "streams_graphs-tight", "resnet_batches-tight", "unet_multires-tight", "ckpt_spike"} {
		files = append(files, "../../../testdata/snapshots/"+name+"-default.pickle.gz")
	}
	for _, file := range short.Files(t, files, 4) {
		name := strings.TrimPrefix(file, "../../../testdata/")
		if name == "variety/stateonly.pickle.gz" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, name)
			want, err := stats.NewSnapshot(t.Context(), f, stats.Options{Device: input.AnyDevice})
			if err != nil {
				t.Fatal(err)
			}
			p := checked(t, f.Traces[0])
			a := ask(t, p, question(p))
			r, m := a.Results[0], &want.Memory
			if r.PeakReserved != *m.Reserved.Peak || r.PeakAllocated != *m.Allocated.Peak || r.PeakActive != *m.Active.Peak || r.PeakRequested != *m.Requested.Peak {
				t.Errorf("reserved %d, allocated %d, active %d, requested %d; stats has %d, %d, %d, %d", r.PeakReserved, r.PeakAllocated, r.PeakActive, r.PeakRequested,
					*m.Reserved.Peak, *m.Allocated.Peak, *m.Active.Peak, *m.Requested.Peak)
			}
			if r.Fails != (len(want.OOMs) > 0) || r.Fails && (*r.First.Event != *want.OOMs[0].Event || !r.First.RecordedToo) {
				t.Errorf("%+v, recorded %+v", r.First, want.OOMs)
			}
			if r.First != nil && (r.First.Reserved != want.OOMs[0].ReservedBytes || r.First.LargestFree != *want.OOMs[0].LargestFreeBytes) {
				t.Errorf("%+v, recorded %+v", r.First, want.OOMs[0])
			}
			if !a.SelfCheck.Complete || a.SelfCheck.Identical != a.SelfCheck.Events {
				t.Errorf("%+v", a.SelfCheck)
			}
			if slices.ContainsFunc(a.Notes, func(n string) bool { return strings.HasPrefix(n, "under its own settings the replay") }) {
				t.Errorf("%q", a.Notes)
			}
		})
	}
}

// Results are in the order of the question, and the same on any number of cores.
func TestOrderAndDeterminism(t *testing.T) {
	p := program(t, "snapshots/unet_multires-tight-default.pickle.gz")
	confs := []string{"max_split_size_mb:128", "expandable_segments:True", "", "roundup_power2_divisions:4", "max_split_size_mb:128"}
	var documents []string
	for _, workers := range []int{1, 4, 0} {
		q := question(p)
		q.Workers, q.Points = workers, 7
		for _, c := range confs {
			q.Settings = append(q.Settings, setting(t, c))
		}
		last := 0
		q.Progress = func(done, total int) {
			if done != last+1 || total != len(confs)+1 {
				t.Errorf("%d of %d after %d", done, total, last)
			}
			last = done
		}
		a := ask(t, p, q)
		var got []string
		for _, r := range a.Results {
			got = append(got, r.Settings)
		}
		if diff := cmp.Diff(append([]string{""}, confs...), got); diff != "" || last != len(confs)+1 {
			t.Error(diff, last)
		}
		doc, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(doc))
	}
	if documents[0] != documents[1] || documents[0] != documents[2] {
		t.Error("the documents differ")
	}
	if !strings.Contains(documents[0], `"source":"inferred"`) {
		t.Errorf("%.300s", documents[0])
	}
}

// What is known when the context ends is returned.
func TestCancel(t *testing.T) {
	p := program(t, "variety/graphs.pickle.gz")
	ctx, cancel := context.WithCancel(t.Context())
	q := question(p, setting(t, "expandable_segments:True"), setting(t, "max_split_size_mb:64"), setting(t, ""))
	q.Workers = 1
	q.Progress = func(done, _ int) {
		if done == 2 {
			cancel()
		}
	}
	a, err := Ask(ctx, p, q)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Interrupted || len(a.Results) != 2 || a.Results[1].Settings != "expandable_segments:True" || !slices.Equal(a.NotRun, []string{"max_split_size_mb:64", ""}) {
		t.Errorf("%+v", a)
	}
	a, err = Ask(ctx, p, q)
	if err != nil || !a.Interrupted || len(a.Results) != 0 || len(a.NotRun) != 4 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestErrors(t *testing.T) {
	for _, conf := range []string{"nonsense", "max_split_size_mb", "max_split_size_mb:1", "expandable_segments:yes"} {
		var refused *settings.Error
		_, err := ParseSetting(conf)
		if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), `settings "`+conf+`", token `) {
			t.Errorf("%v", err)
		}
	}
	p := program(t, "variety/graphs.pickle.gz")
	for conf, want := range map[string]string{
		"backend:cudaMallocAsync":         "another allocator",
		"per_process_memory_fraction:0.5": "per_process_memory_fraction",
	} {
		var setting_ *SettingError
		var condition *replay.ConditionError
		_, err := Ask(t.Context(), p, question(p, setting(t, conf)))
		if !errors.As(err, &setting_) || !errors.As(err, &condition) || setting_.Conf != conf || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
	// A trace that cannot be replayed at all: no settings are to blame.
	cut := *open(t, "variety/midrun.pickle.gz").Traces[0]
	cut.Partial = true
	q := checked(t, &cut)
	var blamed *SettingError
	if _, err := Ask(t.Context(), q, question(q, setting(t, ""))); err == nil || errors.As(err, &blamed) {
		t.Errorf("%v", err)
	}
}

func TestSelfCheckAndNotes(t *testing.T) {
	tests := []struct {
		name, file string
		change     func(*trace.Trace)
		question   func(*Question)
		check      string
		notes      []string // beginnings, in this order
	}{
		{name: "a whole recording", file: "snapshots/resnet_batches-tight-default.pickle.gz", check: "the model reproduces 23,693 of 23,693 recorded events"},
		{
			name: "one that ends in an OOM", file: "snapshots/leak_graph-tight-default.pickle.gz",
			check: "the model reproduces 11,345 of 11,345 recorded events", notes: []string{"the recording ends at a failed request"},
		},
		{
			name: "mid-run", file: "variety/ring.pickle.gz", check: "the model reproduces 3,000 of 3,000",
			notes: []string{"the ring of events overflowed", "the replays begin with the 17.39 GiB reserved"},
		},
		{
			name: "a model that fails", file: "variety/graphs.pickle.gz", change: func(t *trace.Trace) { t.Events.Size.Set(9, 7<<30) },
			check: "the model reproduces 8 of 105 recorded events; at event 8 they diverge (",
		},
		{
			name: "an end that differs", file: "variety/graphs.pickle.gz", change: func(t *trace.Trace) { t.Segments[0].Blocks[0].RequestedSize++ },
			check: "the model reproduces 105 of 105 recorded events, but not the final state (",
		},
		{
			name: "cut off", file: "variety/split.pickle.gz", change: func(t *trace.Trace) { t.Events.Cut(5000); t.Partial = true },
			check: "the model reproduces 5,000 of 5,000", notes: []string{"the file ends within the events: its segments", "the file ends within the events: what"},
		},
		{
			name: "collection without a limit", file: "variety/graphs.pickle.gz",
			question: func(q *Question) { q.Settings = append(q.Settings, setting(t, "garbage_collection_threshold:0.5")) },
			check:    "the model", notes: []string{"garbage_collection_threshold has no effect without a limit"},
		},
		{
			name: "a fraction", file: "variety/graphs.pickle.gz", change: func(t *trace.Trace) { t.Settings.Parsed.PerProcessMemoryFraction = 0.5 },
			check: "the model", notes: []string{"the recording has per_process_memory_fraction:0.5"},
		},
		{
			name: "a limit that cannot have been", file: "variety/graphs.pickle.gz",
			question: func(q *Question) { n := uint64(10 << 20); q.Limit.Bound = Bound{&n, Recorded} },
			check:    "the model", notes: []string{"under its own settings the replay fails at event"},
		},
		{
			name: "no limit where there was one", file: "snapshots/resnet_batches-tight-default.pickle.gz",
			question: func(q *Question) { q.Limit.Bound = given(0) }, check: "the model",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := open(t, tt.file).Traces[0]
			if tt.change != nil {
				tt.change(tr)
			}
			p := checked(t, tr)
			q := question(p)
			if tt.question != nil {
				tt.question(&q)
			}
			a := ask(t, p, q)
			if !strings.HasPrefix(a.SelfCheck.Note, tt.check) || a.SelfCheck.Complete != (p.Program.Check.First == nil) {
				t.Errorf("%+v", a.SelfCheck)
			}
			if len(a.Notes) < len(tt.notes) || p.Program.Check.Identical && len(a.Notes) != len(tt.notes) {
				t.Fatalf("%q", a.Notes)
			}
			for i, n := range tt.notes {
				if !strings.HasPrefix(a.Notes[i], n) {
					t.Errorf("%q, want %q", a.Notes[i], n)
				}
			}
		})
	}
}

func TestSkip(t *testing.T) {
	p := program(t, "snapshots/moe_train-tight-default.pickle.gz")
	low := uint64(2 << 30)
	q := Question{Limit: GivenLimit(p, low), Memory: GivenMemory(0)}
	die := ask(t, p, q).Results[0]
	q.SkipOOM = true
	a := ask(t, p, q)
	skip := a.Results[0]
	if a.OnOOM != OnOOMSkip || !die.Fails || die.OOMs != 1 || skip.OOMs < 2 || *skip.First.Event != *die.First.Event || skip.PeakReserved > low || *skip.Limit != low || skip.DeviceMemory != nil {
		t.Errorf("%+v\n%+v", die, skip)
	}
}

func TestCurve(t *testing.T) {
	p := program(t, "variety/profiler.pickle.gz")
	q := question(p, setting(t, "expandable_segments:True"))
	q.Points = 50
	for _, r := range ask(t, p, q).Results {
		c := r.Curve
		for _, n := range []int{len(c.Event), len(c.Time), len(c.Reserved), len(c.Active), len(c.Allocated), len(c.Requested), len(c.LargestFree), len(c.Fragmentation)} {
			if n != 50 {
				t.Fatalf("%d points", n)
			}
		}
		if slices.Max(c.Reserved) != r.PeakReserved || slices.Max(c.Allocated) != r.PeakAllocated || slices.Max(c.Active) != r.PeakActive || slices.Max(c.Requested) != r.PeakRequested {
			t.Errorf("the curve does not reach the peaks")
		}
		if !slices.IsSorted(c.Event) || *c.Time[49] <= *c.Time[0] || slices.Max(c.Fragmentation) > 1 || slices.Max(c.LargestFree) > r.PeakReserved {
			t.Errorf("%+v", c)
		}
	}
	q.Points = 0
	if r := ask(t, p, q).Results[0]; r.Curve != nil {
		t.Error("a curve that nobody asked for")
	}
}
