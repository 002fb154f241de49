package check

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/documented"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	memorystats "github.com/ashlar-mem/ashlar/snapshot/stats"
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

func measure(t *testing.T, tr *trace.Trace) *Measures {
	t.Helper()
	m, err := MeasureRun(t.Context(), run.New(tr, nil))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func report(t *testing.T, s Subject, r Rules) *Report {
	t.Helper()
	got, err := Run(t.Context(), s, r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func ptr[T any](v T) *T { return &v }

// outcome returns the verdict of a rule in a word.
func outcome(p *bool) string {
	switch {
	case p == nil:
		return "unknown"
	case *p:
		return "holds"
	}
	return "broken"
}

func TestSpans(t *testing.T) {
	tests := []struct {
		v               span
		atMost, atLeast string // 10
		text            string
	}{
		{v: exactly(10), atMost: "holds", atLeast: "holds", text: "10 B"},
		{v: exactly(11), atMost: "broken", atLeast: "holds", text: "11 B"},
		{v: exactly(-3), atMost: "holds", atLeast: "broken", text: "-3 B"},
		{v: atLeast(11, ""), atMost: "broken", atLeast: "holds", text: "at least 11 B"},
		{v: atLeast(9, ""), atMost: "unknown", atLeast: "unknown", text: "at least 9 B"},
		{v: span{low: math.Inf(-1), high: 9}, atMost: "holds", atLeast: "broken", text: "at most 9 B"},
		{v: span{low: 9, high: 11}, atMost: "unknown", atLeast: "unknown", text: "9 B to 11 B"},
		{v: span{low: 10, high: 11}, atMost: "unknown", atLeast: "holds", text: "10 B to 11 B"},
		{v: unknown(""), atMost: "unknown", atLeast: "unknown", text: "unknown"},
	}
	for _, tt := range tests {
		if got := outcome(tt.v.atMost(10)); got != tt.atMost {
			t.Errorf("%+v at most 10: %s", tt.v, got)
		}
		if got := outcome(tt.v.atLeast(10)); got != tt.atLeast {
			t.Errorf("%+v at least 10: %s", tt.v, got)
		}
		if got := tt.v.text(Bytes); got != tt.text {
			t.Errorf("%+v: %q", tt.v, got)
		}
	}
}

// The values are those of stats.
func TestValuesAreThoseOfStats(t *testing.T) {
	for _, name := range []string{"variety/midrun", "variety/expand_tight", "snapshots/gpt2_varlen-tight-default", "snapshots/streams_graphs-default"} {
		f := open(t, name+".pickle.gz")
		want, err := stats.NewSnapshot(t.Context(), f, stats.Options{Device: input.AnyDevice})
		if err != nil {
			t.Fatal(err)
		}
		m := measure(t, f.Traces[0])
		r := report(t, Subject{Measures: m}, Rules{
			MaxReserved: want.Memory.Reserved.Peak, MaxAllocated: want.Memory.Allocated.Peak,
		})
		for i, v := range []uint64{*want.Memory.Reserved.Peak, *want.Memory.Allocated.Peak} {
			if got := r.Rules[i]; got.Value == nil || uint64(*got.Value) != v {
				t.Errorf("%s: %+v, want %v", name, got, v)
			}
		}
		if name == "variety/midrun" && (len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "the recording starts mid-run")) {
			t.Errorf("%q", r.Notes)
		}
	}
}

// Fragmentation compares the two peaks, whatever the moments they are of.
func TestFragmentation(t *testing.T) {
	f, err := snapshot.Read(t.Context(), "small", strings.NewReader(`{"segments": [{"device": 0, "address": 33554432, "total_size": 20971520,
		"allocated_size": 5242880, "active_size": 5242880, "stream": 0, "segment_type": "large", "blocks": [
		{"address": 33554432, "size": 5242880, "requested_size": 5242880, "state": "active_allocated"},
		{"address": 38797312, "size": 15728640, "requested_size": 0, "state": "inactive"}]}],
		"device_traces": [[{"action": "segment_alloc", "addr": 33554432, "size": 20971520, "stream": 0},
		{"action": "alloc", "addr": 33554432, "size": 5242880, "stream": 0}]]}`), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	small := measure(t, f.Traces[0])
	if v := small.fragmentation(); v.low != 75 || !v.exact() || v.at != "peaks 5.00 MiB allocated, 20.00 MiB reserved" {
		t.Errorf("%+v", v)
	}
	// Here reserved memory is highest while little is allocated.
	m := measure(t, open(t, "snapshots/streams_graphs-default.pickle.gz").Traces[0])
	v, want := m.fragmentation(), 100*(m.reserved.low-m.allocated.low)/m.reserved.low
	if !v.exact() || math.Abs(v.low-want) > 1e-9 || m.reserved.at == m.allocated.at {
		t.Errorf("%+v, want %v", v, want)
	}
	// A segment of 2 MiB that is added when little is allocated changes next to
	// nothing.
	quiet := &Measures{reserved: exactly(m.reserved.low + 2<<20), allocated: m.allocated}
	if by := quiet.fragmentation().low - v.low; by <= 0 || by > 100*(2<<20)/m.reserved.low {
		t.Errorf("2 MiB change it by %v points", by)
	}
	// A state that was highest before the first event.
	ring := measure(t, open(t, "variety/ring.pickle.gz").Traces[0])
	if v := ring.fragmentation(); !v.exact() || v.low <= 0 || v.low >= 100 {
		t.Errorf("%+v", v)
	}
	// Rounded numbers give a range, and missing ones nothing.
	rounded := &Measures{reserved: span{low: 100, high: 200, why: "it is rounded in the file"}, allocated: exactly(50)}
	if v := rounded.fragmentation(); v.low != 50 || v.high != 75 || v.why == "" {
		t.Errorf("%+v", v)
	}
	if v := (&Measures{reserved: exactly(100), allocated: unknown("why")}).fragmentation(); v.text(Percent) != "unknown" || v.why != "why" {
		t.Errorf("%+v", v)
	}
	if v := (&Measures{}).fragmentation(); v != exactly(0) {
		t.Errorf("nothing reserved: %+v", v)
	}
}

func TestRules(t *testing.T) {
	tight := open(t, "snapshots/gpt2_varlen-tight-default.pickle.gz").Traces[0]
	m := measure(t, tight)
	program, err := run.New(tight, nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reserved, allocated := uint64(m.reserved.low), uint64(m.allocated.low)
	bigger := &Measures{reserved: exactly(m.reserved.low * 2), allocated: exactly(m.allocated.low / 2)}
	expand, err := whatif.ParseSetting("expandable_segments:True")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		rules  Rules
		old    *Measures
		want   string // rule:outcome ...
		detail string // part of those
	}{
		{"reserved, reached", Rules{MaxReserved: &reserved}, nil, "max_reserved:holds", "just reached; reached at event 18,283"},
		{"reserved, above", Rules{MaxReserved: ptr(reserved - 1)}, nil, "max_reserved:broken", "1 B above"},
		{"allocated", Rules{MaxAllocated: ptr(allocated + 3)}, nil, "max_allocated:holds", "3 B below; reached at event 18,286"},
		{"allocated, above", Rules{MaxAllocated: ptr(allocated - 3)}, nil, "max_allocated:broken", "3 B above"},
		{"fragmentation", Rules{MaxFragmentation: ptr(5.0)}, nil, "max_fragmentation:holds", "0.62 points below; peaks "},
		{"fragmentation, above", Rules{MaxFragmentation: ptr(4.0)}, nil, "max_fragmentation:broken", "0.38 points above"},
		{"headroom", Rules{MinHeadroom: ptr[uint64](5), Limit: ptr(reserved + 5)}, nil, "min_headroom:holds", "just reached"},
		{"headroom, too little", Rules{MinHeadroom: ptr[uint64](5), Limit: ptr(reserved + 4)}, nil, "min_headroom:broken", "1 B below; reserved peak 15.44 GiB of 15.44 GiB"},
		{"headroom, none", Rules{MinHeadroom: ptr[uint64](0), Limit: ptr(reserved - 2<<20)}, nil, "min_headroom:broken", "2.00 MiB below"},
		// The file shows a limit from 15.44 to 17.22 GiB.
		{"headroom, inferred, certain", Rules{MinHeadroom: ptr[uint64](0)}, nil, "min_headroom:holds", ""},
		{"headroom, inferred, open", Rules{MinHeadroom: ptr[uint64](1 << 30)}, nil, "min_headroom:unknown", "give a limit"},
		{"headroom, inferred, impossible", Rules{MinHeadroom: ptr[uint64](2 << 30)}, nil, "min_headroom:broken", "at least"},
		{"survives", Rules{Survives: ptr[uint64](18 << 30)}, nil, "survives:holds", "passes under the recorded settings"},
		{"survives not", Rules{Survives: ptr[uint64](12 << 30)}, nil, "survives:broken", "too much"},
		{"survives with settings", Rules{Survives: ptr[uint64](17 << 30), Settings: &expand}, nil, "survives:holds", "passes under expandable_segments:True"},
		{"growth", Rules{MaxGrowth: ptr(0.0)}, m, "max_growth_reserved:holds max_growth_allocated:holds", "just reached; from 15.44 GiB to 15.44 GiB"},
		{"growth, mixed", Rules{MaxGrowth: ptr(99.0)}, bigger, "max_growth_reserved:holds max_growth_allocated:broken", "1.00 points above"},
		{"growth since nothing", Rules{MaxGrowth: ptr(99.0)}, &Measures{reserved: exactly(0), allocated: unknown("it is not there")}, "max_growth_reserved:unknown max_growth_allocated:unknown", "baseline: it is not there"},
		{"all together", Rules{MaxReserved: &reserved, MaxAllocated: ptr[uint64](1)}, nil, "max_reserved:holds max_allocated:broken", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.rules.MaxOOMs = ptr[int64](1) // it ended so
			r := report(t, Subject{Measures: m, Old: tt.old, Run: program}, tt.rules)
			if last := r.Rules[len(r.Rules)-1]; last.Rule != MaxOOMs || outcome(last.Passed) != "holds" {
				t.Errorf("%+v", last)
			}
			r.Rules = r.Rules[:len(r.Rules)-1]
			var got, details []string
			passed, open := true, false
			for _, x := range r.Rules {
				got = append(got, x.Rule+":"+outcome(x.Passed))
				details = append(details, x.Detail)
				passed, open = passed && x.Passed != nil && *x.Passed, open || x.Passed == nil
				if x.Detail == "" || x.ValueText == "" || x.Unit != Bytes && x.Unit != Percent {
					t.Errorf("%+v", x)
				}
			}
			if s := strings.Join(got, " "); s != tt.want || r.Passed != passed || r.Unknown() != open {
				t.Errorf("%s, passed %t, unknown %t", s, r.Passed, r.Unknown())
			}
			if s := strings.Join(details, "\n"); !strings.Contains(s, tt.detail) {
				t.Errorf("%q is not in %q", tt.detail, s)
			}
		})
	}
}

// No rule holds because of a value that is not known.
func TestUnknownValues(t *testing.T) {
	all := Rules{
		MaxReserved: ptr[uint64](1 << 60), MaxAllocated: ptr[uint64](1 << 60), MaxFragmentation: ptr(100.0),
		MinHeadroom: ptr[uint64](0), Survives: ptr[uint64](1 << 60), MaxGrowth: ptr(1e9),
	}
	cut := func(n int) func(*trace.Trace) {
		return func(t *trace.Trace) { t.Events.Cut(n); t.Partial = true }
	}
	tests := []struct {
		name, file string
		change     func(*trace.Trace)
		want       string // outcomes of all rules; growth is against itself
	}{
		{"no events", "variety/stateonly", nil, "unknown unknown unknown unknown unknown unknown unknown"},
		{"host memory", "variety/graphs", func(t *trace.Trace) { t.Host = true }, "holds unknown unknown unknown unknown holds unknown"},
		{"a replay that parts", "variety/graphs", func(t *trace.Trace) { t.Events.Size.Set(9, 7<<30) }, "holds unknown unknown unknown unknown holds unknown"},
		{"cut off", "variety/split", cut(5000), "unknown unknown unknown unknown unknown unknown unknown"},
		{"cut off, mid-run", "variety/midrun", cut(5000), "unknown unknown unknown unknown unknown unknown unknown"},
		{"nothing refused", "variety/graphs", nil, "holds holds holds unknown holds holds holds"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := open(t, tt.file+".pickle.gz").Traces[0]
			if tt.change != nil {
				tt.change(tr)
			}
			s := Subject{Measures: measure(t, tr), NoProgram: "there is none"}
			s.Old = s.Measures
			if !tr.Host && tr.Events.Len() > 0 {
				c, err := run.New(tr, nil).Check(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				s.Run = c
			}
			r := report(t, s, all)
			var got []string
			for _, x := range r.Rules[:7] { // then come the failed requests
				got = append(got, outcome(x.Passed))
				if x.Passed == nil && (x.Detail == "" || x.Value != nil) {
					t.Errorf("%+v", x)
				}
			}
			if s := strings.Join(got, " "); s != tt.want || r.Passed {
				t.Errorf("%s, want %s", s, tt.want)
			}
			if said := strings.Contains(r.Rules[4].Detail, "the model reproduces only 8 of 105 recorded events"); said != (tt.name == "a replay that parts") {
				t.Errorf("%q", r.Rules[4].Detail)
			}
		})
	}
}

// The value of a run that fails is what it would have needed.
func TestSurvivesValue(t *testing.T) {
	tr := open(t, "snapshots/gpt2_fixed-default.pickle.gz").Traces[0]
	p, err := run.New(tr, nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []uint64{3 << 30, 20 << 30} {
		x := report(t, Subject{Measures: &Measures{}, Run: p}, Rules{Survives: &limit}).Rules[0]
		if *x.Passed != (*x.Value <= x.Bound) || *x.Passed != (limit == 20<<30) {
			t.Errorf("%+v", x)
		}
	}
}

// A peak is no lower than the state at the end, whatever the replay does.
func TestStateAtTheEndCounts(t *testing.T) {
	tr := open(t, "variety/split.pickle.gz").Traces[0]
	tr.Events.Size.Set(9, 7<<30)
	sum := uint64(0)
	for _, s := range tr.Segments {
		sum += s.AllocatedSize
	}
	m := measure(t, tr)
	for bound, want := range map[uint64]string{sum - 1: "broken", sum: "unknown"} {
		if x := report(t, Subject{Measures: m}, Rules{MaxAllocated: &bound}).Rules[0]; outcome(x.Passed) != want {
			t.Errorf("%+v, want %s", x, want)
		}
	}
}

// A peak of which only a part is known can still be too high.
func TestLowerBoundsBreakRules(t *testing.T) {
	tr := open(t, "variety/split.pickle.gz").Traces[0]
	tr.Events.Cut(5000)
	tr.Partial = true
	r := report(t, Subject{Measures: measure(t, tr)}, Rules{MaxReserved: ptr[uint64](1 << 20), MaxAllocated: ptr[uint64](1 << 20)})
	for _, x := range r.Rules {
		if outcome(x.Passed) != "broken" || x.Value != nil || !strings.HasPrefix(x.Detail, "at least ") {
			t.Errorf("%+v", x)
		}
	}
}

func TestDumps(t *testing.T) {
	d, err := memorystats.Parse([]byte(`{"reserved_bytes.all.peak": 1000, "allocated_bytes.all.peak": 750, "reserved_bytes.all.current": 10}`))
	if err != nil {
		t.Fatal(err)
	}
	r := report(t, Subject{Measures: MeasureDump(d, 0), NoProgram: "no events"}, Rules{
		MaxReserved: ptr[uint64](999), MaxAllocated: ptr[uint64](750), MaxFragmentation: ptr(100.0), Survives: ptr[uint64](1 << 40),
		MinHeadroom: ptr[uint64](24), Limit: ptr[uint64](1024),
	})
	want := []string{"broken", "holds", "holds", "holds", "unknown"}
	for i, x := range r.Rules {
		if outcome(x.Passed) != want[i] {
			t.Errorf("%+v, want %s", x, want[i])
		}
	}
	var several *SeveralDumpsError
	if _, err := oneDump([]*memorystats.Dump{d, d}, input.AnyDevice); !errors.As(err, &several) || several.Dumps != 2 {
		t.Error(err)
	}
	other := *d
	d.Device, other.Device = 0, 1
	if got, err := oneDump([]*memorystats.Dump{d, &other}, input.Device{Number: 1}); err != nil || got != &other {
		t.Error(got, err)
	}
	if _, err := oneDump([]*memorystats.Dump{d, &other}, input.Device{Number: 2}); err == nil {
		t.Error("a dump of device 2")
	}
}

func TestRecordedLimit(t *testing.T) {
	tr := open(t, "variety/graphs.pickle.gz").Traces[0]
	f := &recorder.Facts{Devices: []recorder.Device{{Index: 0, LimitBytes: ptr[uint64](1 << 40), LimitKnown: true}}}
	m, err := MeasureRun(t.Context(), run.New(tr, f))
	if err != nil {
		t.Fatal(err)
	}
	r := report(t, Subject{Measures: m}, Rules{MinHeadroom: ptr[uint64](1 << 30)})
	if x := r.Rules[0]; !r.Passed || x.Value == nil || *x.Value != 1<<40-m.reserved.low {
		t.Errorf("%+v", x)
	}
}

func TestCancelAndBadSettings(t *testing.T) {
	tr := open(t, "variety/graphs.pickle.gz").Traces[0]
	m := measure(t, tr)
	program, err := run.New(tr, nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	async, err := whatif.ParseSetting("backend:cudaMallocAsync")
	if err != nil {
		t.Fatal(err)
	}
	var setting *whatif.SettingError
	if _, err := Run(t.Context(), Subject{Measures: m, Run: program}, Rules{Survives: ptr[uint64](1), Settings: &async}); !errors.As(err, &setting) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Subject{Measures: m, Run: program}, Rules{Survives: ptr[uint64](1)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := MeasureRun(ctx, run.New(tr, nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Every field of the JSON is documented, and every rule.
func TestFieldsAreDocumented(t *testing.T) {
	const page = "../../../docs/json.md"
	documented.Check(t, page, reflect.TypeFor[Document](), 13, "check")
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "\n## ashlar check\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, rule := range []string{MaxReserved, MaxAllocated, MaxFragmentation, MinHeadroom, Survives, MaxGrowthReserved, MaxGrowthAllocated} {
		if !strings.Contains(text, "`"+rule+"`") {
			t.Errorf("%s is not there", rule)
		}
	}
}

// Without rules, and with rules that hold: what a gate must not let through.
func TestNothingPassesThatDied(t *testing.T) {
	generous := Rules{MaxReserved: ptr[uint64](1 << 60)}
	for _, tt := range []struct {
		file, without string
		generous      bool
	}{
		{"snapshots/gpt2_fixed-default", "max_leak:holds max_retries:holds max_ooms:holds", true},
		{"snapshots/leak_graph-default", "max_leak:broken max_retries:holds max_ooms:holds", true},
		{"snapshots/resnet_batches-tight-default", "max_leak:holds max_retries:broken max_ooms:holds", true},
		{"snapshots/leak_graph-tight-default", "max_leak:broken max_retries:broken max_ooms:broken", false},
		{"variety/graphs", "max_retries:holds max_ooms:holds", true}, // too few steps for a leak
		{"variety/stateonly", "max_ooms:unknown", false},
	} {
		t.Run(tt.file, func(t *testing.T) {
			r := run.New(open(t, tt.file+".pickle.gz").Traces[0], nil)
			m, err := MeasureRun(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.measureLeak(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range report(t, Subject{Measures: m}, Rules{}).Rules {
				got = append(got, x.Rule+":"+outcome(x.Passed))
			}
			if s := strings.Join(got, " "); s != tt.without {
				t.Errorf("without rules: %s, want %s", s, tt.without)
			}
			if passed := report(t, Subject{Measures: m}, generous).Passed; passed != tt.generous {
				t.Errorf("a rule that holds lets it pass: %t", passed)
			}
		})
	}
}

func TestLeaksRetriesAndOOMs(t *testing.T) {
	r := run.New(open(t, "snapshots/leak_graph-tight-default.pickle.gz").Traces[0], nil)
	m, err := MeasureRun(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.measureLeak(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		rules  Rules
		want   bool
		detail string
	}{
		{Rules{MaxLeak: ptr[uint64](40 << 20), MaxRetries: ptr[int64](2), MaxOOMs: ptr[int64](1)}, true, "below; most of it allocated at "},
		{Rules{MaxLeak: ptr[uint64](39 << 20), MaxOOMs: ptr[int64](1)}, false, "KiB a step above; most of it allocated at "},
		{Rules{MaxLeak: ptr[uint64](0), MaxOOMs: ptr[int64](1)}, false, "most of it allocated at "},
		{Rules{MaxRetries: ptr[int64](1), MaxOOMs: ptr[int64](1)}, false, "1 above"},
		{Rules{MaxRetries: ptr[int64](2)}, false, "at event 11,344, which ends the run"},
	} {
		got := report(t, Subject{Measures: m}, tt.rules)
		said := ""
		for _, x := range got.Rules {
			said += x.Detail + "\n"
		}
		if got.Passed != tt.want || !strings.Contains(said, tt.detail) {
			t.Errorf("%+v: passed %t\n%s", tt.rules, got.Passed, said)
		}
	}
}

// The counters of the recorder and of dumps count too, and messages.
func TestCounted(t *testing.T) {
	tr := open(t, "variety/graphs.pickle.gz").Traces[0]
	device := tr.Device
	dump := memorystats.FromValues(device, map[string]int64{"num_ooms": 3, "num_alloc_retries": 7})
	for _, tt := range []struct {
		name  string
		facts *recorder.Facts
		want  [2]float64 // retries, ooms
	}{
		{"nothing", nil, [2]float64{0, 0}},
		{"statistics", &recorder.Facts{MemoryStats: map[int]*memorystats.Dump{device: dump}}, [2]float64{7, 3}},
		{"another device", &recorder.Facts{MemoryStats: map[int]*memorystats.Dump{device + 1: dump}}, [2]float64{0, 0}},
		{"written for an OOM", &recorder.Facts{Reason: recorder.OOM, Device: &device}, [2]float64{0, 1}},
	} {
		m, err := MeasureRun(t.Context(), run.New(tr, tt.facts))
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]float64{m.retries.low, m.ooms.low}; got != tt.want || !m.retries.exact() || !m.ooms.exact() {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if m := MeasureDump(dump, 0); m.retries.low != 7 || m.ooms.low != 3 {
		t.Errorf("of a dump: %+v", m)
	}
	if m := MeasureDump(memorystats.FromValues(0, map[string]int64{"active.all.peak": 1}), 2); m.ooms.low != 2 || m.retries.exact() {
		t.Errorf("of a dump with messages: %+v", m)
	}
	if r := report(t, Subject{Measures: MeasureMessages(input.OOMMessage, 1)}, Rules{}); r.Passed || r.Unknown() || len(r.Rules) != 1 {
		t.Errorf("of a message: %+v", r)
	}
}
