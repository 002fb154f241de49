package policies

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/policy"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func checked(t testing.TB, name string) *run.Checked {
	t.Helper()
	f, err := snapshot.Open(t.Context(), "../../../testdata/"+name+".pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.New(f.Traces[0], nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ask(t testing.TB, r *run.Checked, q Question) *Answer {
	t.Helper()
	if q.Budget == 0 {
		q.Budget = 100 * time.Millisecond
	}
	a, err := Ask(t.Context(), r, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// find returns the result of a policy.
func (a *Answer) find(t testing.TB, name string) *Result {
	t.Helper()
	for _, r := range a.Results {
		if r.Policy == name {
			return r
		}
	}
	t.Fatalf("there is no result of %s", name)
	return nil
}

// PyTorch's own allocator does what whatif and tune say, to the byte.
func TestEngineIsWhatIfAndTune(t *testing.T) {
	for _, name := range []string{"snapshots/streams_graphs-default", "snapshots/unet_multires-default", "variety/ring"} {
		r := checked(t, name)
		compareWithEngine(t, r, ask(t, r, Question{Policies: []string{Caching, Expandable}}))
	}
}

// compareWithEngine compares the rows of PyTorch's allocator with whatif and tune.
func compareWithEngine(t *testing.T, r *run.Checked, a *Answer) {
	t.Helper()
	var settings []whatif.Setting
	for _, conf := range []string{"", "expandable_segments:True"} {
		s, err := whatif.ParseSetting(conf)
		if err != nil {
			t.Fatal(err)
		}
		settings = append(settings, s)
	}
	w, err := whatif.Ask(t.Context(), r, whatif.Question{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{Caching, Expandable} {
		got, want := a.find(t, name), w.Results[i+1]
		if *got.PeakReserved != want.PeakReserved || *got.DeviceAllocs != want.DeviceAllocs || *got.DeviceFrees != want.DeviceFrees || *got.DriverMS != want.DriverMS {
			t.Errorf("%s: reserved %d, whatif says %d", name, *got.PeakReserved, want.PeakReserved)
		}
		c, err := tune.Measure(t.Context(), r, settings[i].Parsed, 0, a.LowerBound)
		if err != nil {
			t.Fatal(err)
		}
		if *got.SmallestLimit != c.SmallestLimit || *got.PeakReserved != c.PeakReserved {
			t.Errorf("%s: smallest limit %d, tune says %d", name, *got.SmallestLimit, c.SmallestLimit)
		}
	}
}

// aboveBound checks that nothing is below the bound and that waste adds up.
func aboveBound(t *testing.T, a *Answer) {
	t.Helper()
	for _, r := range a.Results {
		if r.PeakReserved == nil {
			continue
		}
		if !r.Fails && (*r.PeakReserved < a.LowerBound || *r.ReservedOverLive < 1) {
			t.Errorf("%s reserves %d, live are %d", r.Policy, *r.PeakReserved, a.LowerBound)
		}
		if r.SmallestLimit != nil && *r.SmallestLimit < a.LowerBound && r.Policy != Expandable {
			t.Errorf("%s passes under %d, live are %d", r.Policy, *r.SmallestLimit, a.LowerBound)
		}
		if r.Kind == Online && *r.InternalWaste+*r.ExternalWaste > *r.PeakReserved {
			t.Errorf("%s wastes %d and %d of %d", r.Policy, *r.InternalWaste, *r.ExternalWaste, *r.PeakReserved)
		}
	}
}

func TestNothingIsBelowTheBound(t *testing.T) {
	for _, name := range short.Some([]string{
		"snapshots/streams_graphs-default", "snapshots/unet_multires-default", "variety/ring", "advice/side_stream", "advice/broadcast_residual",
	}, 1) {
		a := ask(t, checked(t, name), Question{})
		if len(a.Results) != len(Names) || a.Interrupted {
			t.Errorf("%s: %d results", name, len(a.Results))
		}
		aboveBound(t, a)
		plan := a.find(t, StaticPlan)
		if name == "snapshots/streams_graphs-default" && *plan.ReservedOverLive > 1.005 {
			t.Errorf("the static plan needs %.4f of the bound", *plan.ReservedOverLive)
		}
	}
}

// A strategy passes under its smallest limit, and fails under 2 MiB less.
func TestSmallestLimits(t *testing.T) {
	r := checked(t, "snapshots/streams_graphs-default")
	a := ask(t, r, Question{})
	for _, got := range a.Results {
		if got.Kind != Online || got.SmallestLimit == nil || got.Policy == Caching || got.Policy == Expandable {
			continue
		}
		for less, fails := range map[uint64]bool{0: false, limitStep: true} {
			limit := *got.SmallestLimit - less
			q := Question{Policies: []string{got.Policy}, NoLimits: true, Limit: whatif.GivenLimit(r, limit)}
			at := ask(t, r, q).Results[0]
			if at.Fails != fails || at.Fails && at.First == nil || !fails && *at.PeakReserved > limit {
				t.Errorf("%s under %d (smallest %d): fails %v with %d reserved", got.Policy, limit, *got.SmallestLimit, at.Fails, *at.PeakReserved)
			}
		}
	}
}

// Under a limit the first failure is described; with skip the run goes on.
func TestFailures(t *testing.T) {
	r := checked(t, "snapshots/leak_graph-default")
	q := Question{Policies: append([]string{Caching, StaticPlan}, policy.Names...), NoLimits: true, Limit: whatif.GivenLimit(r, 600<<20)}
	for _, skip := range []bool{false, true} {
		q.SkipOOM = skip
		for _, got := range ask(t, r, q).Results {
			if got.Policy == StaticPlan {
				if !got.Fails {
					t.Error("the plan fits")
				}
				continue
			}
			if f := got.First; !got.Fails || f == nil || f.Event == nil || f.Size == 0 || f.Reserved > 600<<20 || len(f.Stack) == 0 {
				t.Errorf("%s, skip %v: %+v", got.Policy, skip, got.First)
			}
			if *got.PeakReserved > 600<<20 {
				t.Errorf("%s reserves %d", got.Policy, *got.PeakReserved)
			}
		}
	}
}

// A curve has its points, and its highest is the peak.
func TestCurves(t *testing.T) {
	r := checked(t, "snapshots/unet_multires-default")
	for _, got := range ask(t, r, Question{NoLimits: true, Points: 50}).Results {
		if got.PeakReserved == nil {
			continue
		}
		if got.Curve == nil || len(got.Curve.Reserved) != 50 || len(got.Curve.Event) != 50 {
			t.Errorf("%s: %+v", got.Policy, got.Curve)
			continue
		}
		var most uint64
		for i, n := range got.Curve.Reserved {
			most = max(most, n)
			if got.Curve.Given[i] > n {
				t.Errorf("%s: %d given of %d", got.Policy, got.Curve.Given[i], n)
			}
		}
		if most != *got.PeakReserved {
			t.Errorf("%s: the curve reaches %d, the peak is %d", got.Policy, most, *got.PeakReserved)
		}
	}
}

// What has no steps has no arena, and says why.
func TestArenaNeedsSteps(t *testing.T) {
	r := checked(t, "variety/ring")
	analysis, err := r.Analysis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := ask(t, r, Question{Policies: []string{Arena}}).Results[0]
	if none := len(analysis.Steps.Ranges()) == 0; none != (got.WhyNot != nil) || none != (got.PeakReserved == nil) {
		t.Errorf("%+v", got)
	}
}

// When the context ends, what is known is returned.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := Question{Policies: []string{"best-fit", "buddy", "slab"}, Workers: 1, Progress: func(done, _ int) {
		if done == 1 {
			cancel()
		}
	}}
	a, err := Ask(ctx, checked(t, "snapshots/unet_multires-default"), q)
	if err != nil || !a.Interrupted || len(a.Results) != 1 || fmt.Sprint(a.NotRun) != "[buddy slab]" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestUnknownPolicy(t *testing.T) {
	for _, name := range []string{"bestfit", "async:7x", "async:max:maybe"} {
		err := CheckNames([]string{"best-fit", name})
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "bfc-growth, async:0") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pool by its threshold: less stays reserved the lower it is.
func TestThresholds(t *testing.T) {
	r := checked(t, "snapshots/unet_multires-default")
	a := ask(t, r, Question{Policies: []string{"async:0", "async:8GiB", "async:max"}, NoLimits: true})
	frees := func(i int) int64 { return *a.Results[i].DeviceFrees }
	if frees(0) < frees(1) || frees(1) == 0 || frees(2) != 0 {
		t.Errorf("frees: %d, %d, %d", frees(0), frees(1), frees(2))
	}
}

// Managed memory: what is touched more often moves no less, a smaller device moves no
// less in the end, and accesses are found by their recorded addresses.
func TestManaged(t *testing.T) {
	r := checked(t, "snapshots/streams_graphs-default")
	a := ask(t, r, Question{Policies: []string{Managed, ManagedPrefetch}})
	demand, prefetch := a.find(t, Managed), a.find(t, ManagedPrefetch)
	if len(demand.Sizes) != 5 {
		t.Fatalf("%+v", demand)
	}
	for i, s := range demand.Sizes {
		if s.MovedLow > s.MovedHigh || s.AddedLowMS > s.AddedHighMS || prefetch.Sizes[i].AddedHighMS > s.AddedHighMS {
			t.Errorf("%+v", s)
		}
	}
	if first, last := demand.Sizes[0], demand.Sizes[4]; last.MovedLow <= first.MovedLow || last.MovedHigh <= first.MovedHigh {
		t.Errorf("%+v", demand.Sizes)
	}
	if !strings.Contains(strings.Join(demand.Notes, "\n"), "cliff") {
		t.Errorf("%q", demand.Notes)
	}
	event := 0
	for r.Trace.Events.Action.At(event).String() != "alloc" {
		event++
	}
	addr := r.Trace.Events.Addr.At(event)
	fine := fmt.Sprintf(`{"event": %d, "addr": %d, "bytes": 512, "write": false}`, event, addr)
	accesses, err := ReadAccesses(strings.NewReader(fine+"\n"+fine), r)
	if err != nil || len(accesses) != 2 || accesses[1].offset != 0 {
		t.Fatalf("%+v, %v", accesses, err)
	}
	told := ask(t, r, Question{Policies: []string{Managed}, Accesses: accesses, Costs: &Costs{OnDemand: 1, Prefetch: 1}}).Results[0]
	if s := told.Sizes[4]; s.MovedLow != s.MovedHigh || s.AddedLowMS != float64(s.MovedLow/1e3)/1e3 {
		t.Errorf("%+v", s)
	}
	for text, want := range map[string]string{
		`{"event": 0, "addr": 1, "bytes": 1, "write": true}`:                        "line 1: no block",
		fine + "\n" + `{"event": -5, "addr": 1, "bytes": 1}`:                        "sort them",
		fine + "\n" + `{"event": "x"}`:                                              "line 2",
		`{"when": 3}`:                                                               "line 1",
		fmt.Sprintf(`{"event": %d, "addr": %d, "bytes": 99999999999}`, event, addr): "line 1: no block",
	} {
		if _, err := ReadAccesses(strings.NewReader(text), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// BenchmarkCalls makes the calls of a real run on one core.
func BenchmarkCalls(b *testing.B) {
	c := newCourse(checked(b, "snapshots/serve_generate-default").Program, nil)
	for _, name := range policy.Names {
		b.Run(name, func(b *testing.B) {
			s, err := policy.Parse(name)
			if err != nil {
				b.Fatal(err)
			}
			var o *outcome
			for b.Loop() {
				if o, err = c.drive(b.Context(), s, conditions{only: -1, region: func(policy.Place) uint64 { return 8 << 30 }}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(o.ops)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mcalls/s")
		})
	}
}

// read returns a run made of the JSON of its events.
func read(t testing.TB, events string) *run.Checked {
	t.Helper()
	f, err := snapshot.Read(t.Context(), "a.json", strings.NewReader(`{"segments": [], "device_traces": [[`+events+`]]}`), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.New(f.Traces[0], nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A wrong shape asks for more than there are addresses.
func TestNoLimitSuffices(t *testing.T) {
	for _, size := range []uint64{1 << 44, 1 << 60} {
		r := read(t, fmt.Sprintf(`{"action": "alloc", "addr": 2097152, "size": 512, "stream": 0},
			{"action": "oom", "device_free": 1073741824, "size": %d, "stream": 0}`, size))
		for _, memory := range []uint64{0, 1 << 30} {
			a := ask(t, r, Question{Memory: whatif.GivenMemory(memory)})
			for _, name := range []string{"caching", "best-fit", "buddy", "bfc", "bfc-growth", "async:0"} {
				got := a.find(t, name)
				if !got.Fails || got.First == nil || *got.First.Event != 1 {
					t.Errorf("%s, %d bytes: %+v", name, size, got)
				}
				if got.SmallestLimit != nil || name != "caching" && !slices.Contains(got.Notes, "it fails under any limit") {
					t.Errorf("%s, %d bytes: smallest limit %v, notes %q", name, size, got.SmallestLimit, got.Notes)
				}
			}
		}
	}
}

// Strategies that know no streams have a heap for each.
func TestManyHeaps(t *testing.T) {
	for heaps, answered := range map[int][]string{
		mostRegions:   {"best-fit", "buddy", "slab", "bfc", "bfc-growth", "binning", "async:0"},
		mostHeaps:     {"best-fit", "buddy", "slab", "bfc-growth", "binning", "async:0"},
		2 * mostHeaps: {"binning", "async:0"},
	} {
		all := make([]string, heaps)
		for i := range all {
			all[i] = fmt.Sprintf(`{"action": "alloc", "addr": %d, "size": 512, "stream": %d}`, (i+1)<<21, i)
		}
		a := ask(t, read(t, strings.Join(all, ", ")), Question{})
		for _, name := range policy.Names {
			got := a.find(t, name)
			switch want := slices.Contains(answered, name) || strings.HasSuffix(name, "-fit") && heaps <= mostHeaps || name == "async:max"; {
			case want && (got.Fails || got.SmallestLimit == nil):
				t.Errorf("%s with %d heaps: %+v", name, heaps, got)
			case !want && (got.WhyNot == nil || !strings.HasPrefix(*got.WhyNot, "each stream and private pool would have a ")):
				t.Errorf("%s with %d heaps: %+v", name, heaps, got)
			}
		}
	}
}

// Where touching all live blocks in every step would take too long, it is done in some steps, and a note says so.
func TestTouchedInSomeSteps(t *testing.T) {
	r := checked(t, "snapshots/gpt2_fixed-default")
	steps, err := r.Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{Question: &Question{}, course: newCourse(r.Program, steps.Ranges()), run: r}
	where, _, err := a.layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if every, err := a.oftenEnough(t.Context(), where, mostTouches); err != nil || every != 1 {
		t.Errorf("an ordinary run: one of %d steps, %v", every, err)
	}
	every, err := a.oftenEnough(t.Context(), where, 1000)
	if err != nil || every < 2 {
		t.Errorf("with fewer touches: one of %d steps, %v", every, err)
	}
	if said := a.managedNotes(nil, every)[0]; !strings.Contains(said, fmt.Sprintf("one of %d steps", every)) {
		t.Error(said)
	}
}

// Live tensors come in order, each once, and none that has ended.
func TestLiveTensors(t *testing.T) {
	l := liveTensors{live: make([]bool, 5)}
	var got []int32
	for _, n := range []int32{3, 1, 4, 0} {
		l.begin(n)
	}
	l.live[1], l.live[4] = false, false
	l.begin(4) // again
	l.each(func(n int32) { got = append(got, n) })
	if !slices.Equal(got, []int32{0, 3, 4}) {
		t.Error(got)
	}
}
