package timeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

func newTrace() *trace.Trace {
	return &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
}

// annotate adds annotations, written as "time+name" and "time-name".
func annotate(tr *trace.Trace, marks ...string) {
	for _, m := range marks {
		i := strings.IndexAny(m, "+-")
		at := int64(0)
		for _, c := range m[:i] {
			at = at*10 + int64(c-'0')
		}
		tr.Annotations = append(tr.Annotations, trace.Annotation{Begin: m[i] == '+', Name: tr.Strings.Add(m[i+1:]), Time: at})
	}
}

func TestProgram(t *testing.T) {
	const step = "Optimizer.step#AdamW.step"
	tests := []struct {
		name     string
		marks    []string
		complete int
		at       map[int64]Place
	}{
		{"nothing", nil, 0, map[int64]Place{5: {}}},
		{"nested ranges", []string{"10+outer", "20+inner", "30-inner", "40-outer"}, 0, map[int64]Place{
			5: {}, 15: {Annotation: "outer"}, 25: {Annotation: "inner"}, 35: {Annotation: "outer"}, 45: {},
		}},
		{"a range within one of its name", []string{"10+f", "20+f", "30-f", "40-f"}, 0, map[int64]Place{35: {Annotation: "f"}, 45: {}}},
		{"the end is missing", []string{"10+f"}, 0, map[int64]Place{5: {}, 99: {Annotation: "f"}}},
		{"the beginning is missing", []string{"10-f"}, 0, map[int64]Place{5: {Annotation: "f"}, 99: {}}},
		{"optimizer steps", []string{"10+" + step, "20-" + step, "30+" + step, "40-" + step}, 2, map[int64]Place{
			5: {Step: 1}, 15: {Step: 1, Annotation: step}, 25: {Step: 2}, 45: {Step: 3},
		}},
		{"a second optimizer", []string{"10+" + step, "20-" + step, "21+Optimizer.step#SGD.step", "22-Optimizer.step#SGD.step", "40+" + step, "50-" + step}, 2, map[int64]Place{
			21: {Step: 2, Annotation: "Optimizer.step#SGD.step"}, 45: {Step: 2, Annotation: step},
		}},
		{"profiler steps come first", []string{"10+ProfilerStep#0", "12+" + step, "14-" + step, "20-ProfilerStep#0", "20+ProfilerStep#1", "30-ProfilerStep#1"}, 2, map[int64]Place{
			5: {}, 13: {Step: 1, Annotation: step}, 25: {Step: 2, Annotation: "ProfilerStep#1"}, 35: {Step: 3},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTrace()
			annotate(tr, tt.marks...)
			p := NewAnnotations(tr)
			if got := p.Complete(); got != tt.complete {
				t.Errorf("%d steps, want %d", got, tt.complete)
			}
			for at, want := range tt.at {
				if got := p.At(at); got != want {
					t.Errorf("at %d: %+v, want %+v", at, got, want)
				}
			}
			if got := p.At(trace.NoTime); got != (Place{}) {
				t.Errorf("without a time: %+v", got)
			}
		})
	}
}

func TestAnnotationsOfOtherDevicesDoNotCount(t *testing.T) {
	tr := newTrace()
	annotate(tr, "10+f", "20-f")
	tr.Annotations[0].Device, tr.Annotations[1].Device = 1, 1
	if p := NewAnnotations(tr); len(p.Ranges) != 0 {
		t.Errorf("%+v", p.Ranges)
	}
	tr.Device = 1
	if got := NewAnnotations(tr).Names(); !cmp.Equal(got, []NameCount{{"f", 1}}) {
		t.Errorf("%+v", got)
	}
}

// stack adds a stack of frames written as "file:line name".
func stack(tr *trace.Trace, frames ...string) trace.StackID {
	var ids []trace.FrameID
	for _, f := range frames {
		place, name, _ := strings.Cut(f, " ")
		file, line, _ := strings.Cut(place, ":")
		n := int64(0)
		for _, c := range line {
			n = n*10 + int64(c-'0')
		}
		ids = append(ids, tr.Stacks.AddFrame(trace.Frame{Name: tr.Strings.Add(name), File: tr.Strings.Add(file), Line: n}))
	}
	return tr.Stacks.Add(ids)
}

func TestSite(t *testing.T) {
	const site = "/usr/lib/python3.12/site-packages/"
	tests := []struct {
		want   string
		frames []string
	}{
		{"train.py:3 main", []string{"/home/me/train.py:3 main"}},
		{"linear.py:134 forward < model.py:7 forward", []string{site + "torch/nn/modules/linear.py:134 forward", site + "torch/nn/modules/module.py:1790 _call_impl", "/home/me/model.py:7 forward", "/home/me/train.py:3 main"}},
		{"adam.py:5 step", []string{site + "torch/optim/adam.py:5 step"}},
		{"at::empty < train.py:3 main", []string{"??:0 torch::unwind::unwind()", "CUDACachingAllocator.cpp:0 c10::cuda::CUDACachingAllocator::Native::malloc(int)", ":0 at::empty(c10::ArrayRef<long>)", "train.py:3 main"}},
		{"at::{anonymous}::f", []string{":0 void at::(anonymous namespace)::f<std::less<int> >(int)"}},
		{"c7.py:9 call < train.py:1 <module>", []string{"/tmp/torchinductor_me/c7.py:9 call", "<frozen runpy>:8 run", "train.py:1 <module>"}},
		{"module.py:1790 _call_impl", []string{site + "torch/nn/modules/module.py:1790 _call_impl"}},
	}
	for _, tt := range tests {
		tr := newTrace()
		s, ok := SiteOf(tr, stack(tr, tt.frames...))
		if !ok || s.String() != tt.want {
			t.Errorf("%v: got %q, want %q", tt.frames, s, tt.want)
		}
	}
	tr := newTrace()
	for _, id := range []trace.StackID{trace.NoStack, trace.EmptyStack} {
		if s, ok := SiteOf(tr, id); ok || Frames(tr, id) != nil {
			t.Errorf("stack %d: %q", id, s)
		}
	}
}

func TestSiteFits(t *testing.T) {
	tr := newTrace()
	s, _ := SiteOf(tr, stack(tr, "/x/site-packages/a/adam.py:5 step", "train.py:12 main"))
	for n, want := range map[int]string{
		99: "adam.py:5 step < train.py:12 main", 32: "adam.py:5 step < train.py:12", 27: "adam.py:5 < train.py:12", 3: "adam.py:5 < train.py:12",
	} {
		if got := s.Fit(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestTellApart(t *testing.T) {
	tr := newTrace()
	ids := []trace.StackID{
		stack(tr, "a.py:1 f", "b.py:2 g", "b.py:9 main"),
		stack(tr, "a.py:1 f", "b.py:3 h", "b.py:9 main"),
		stack(tr, "c.py:1 f"),
		trace.NoStack,
	}
	sites := make([]Site, len(ids))
	for i, id := range ids {
		sites[i], _ = SiteOf(tr, id)
	}
	TellApart(tr, ids, sites)
	var got []string
	for _, s := range sites[:3] {
		got = append(got, s.String())
	}
	want := []string{"a.py:1 f < b.py:2 g", "a.py:1 f < b.py:3 h", "c.py:1 f"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// pool returns an id for tests.
func pool(a, b uint64) alloc.PoolID { return alloc.PoolID{First: a, Second: b} }

func TestPools(t *testing.T) {
	tr := newTrace()
	add := func(a alloc.Action, addr, size uint64) {
		tr.Events.Append(trace.Event{Action: a, Addr: addr, Size: size, Time: trace.NoTime})
	}
	tr.Segments = []trace.Segment{
		{Address: 1000, TotalSize: 100, Pool: pool(0, 1), HasPool: true},                   // there from the start
		{Address: 2000, TotalSize: 100, Pool: pool(7, 0), HasPool: true},                   // obtained twice
		{Address: 9000, TotalSize: 100, Pool: pool(0, 2), HasPool: true, Expandable: true}, // mapped at the end
	}
	add(alloc.ActionAlloc, 1010, 10)        // 0: in the first
	add(alloc.ActionFreeRequested, 1010, 1) // 1
	add(alloc.ActionFreeCompleted, 1010, 1)
	add(alloc.ActionSegmentAlloc, 2000, 100) // 3: given back later, so nobody knows
	add(alloc.ActionAlloc, 2000, 10)
	add(alloc.ActionFreeRequested, 2000, 10)
	add(alloc.ActionFreeCompleted, 2000, 10)
	add(alloc.ActionSegmentFree, 2000, 100)
	add(alloc.ActionSegmentAlloc, 2000, 100) // 8: stays
	add(alloc.ActionAlloc, 2050, 10)
	add(alloc.ActionSegmentMap, 9000, 100) // 10
	add(alloc.ActionAlloc, 9099, 1)
	add(alloc.ActionOOM, 1000, 100)                                                                                                     // 12: the address is free memory
	tr.Events.Append(trace.Event{Action: alloc.ActionAlloc, Addr: 5, Size: 1, Pool: tr.Events.PoolRef(pool(3, 3)), Time: trace.NoTime}) // 13: told
	want := []string{"(0,1)", "(0,1)", "(0,1)", "", "", "", "", "", "(7,0)", "(7,0)", "(0,2)", "(0,2)", "", "(3,3)"}
	var got []string
	c := New(tr, Options{}).Cursor()
	for c.Next() {
		id, ok := c.Pool()
		text := id.String()
		if !ok {
			text = ""
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Files without times, segments, events.
func TestLittleIsKnown(t *testing.T) {
	tr := newTrace()
	l := New(tr, Options{})
	if p := l.Peaks(); p.First != trace.NoTime || p.Reserved.Event != -1 || p.Reserved.Value != 0 || l.Cursor().Next() {
		t.Errorf("no events: %+v", p)
	}
	f := NewState(tr).Fragmentation()
	if want := (Fragmentation{-1, -1, -1, -1}); f != want {
		t.Errorf("no segments: %+v", f)
	}
	tr.Events.Append(trace.Event{Action: alloc.ActionSegmentAlloc, Addr: 1 << 20, Size: 100, Time: trace.NoTime})
	tr.Events.Append(trace.Event{Action: alloc.ActionAlloc, Addr: 1 << 20, Size: 60, Time: trace.NoTime})
	p := New(tr, Options{}).Peaks()
	if p.Reserved.Value != 100 || p.Reserved.Event != 0 || p.Requested.Value != 60 || p.Requested.Event != 1 || p.Requested.Time != trace.NoTime {
		t.Errorf("events only: %+v", p)
	}
}

func TestState(t *testing.T) {
	tr := newTrace()
	tr.Segments = []trace.Segment{
		{TotalSize: 100, Type: "small", Blocks: []trace.Block{
			{Size: 40, RequestedSize: 30, State: alloc.ActiveAllocated}, {Size: 10, RequestedSize: 9, State: alloc.ActivePendingFree}, {Size: 50, State: alloc.Inactive},
		}},
		{TotalSize: 70, Type: "small", Blocks: []trace.Block{{Size: 70, State: alloc.Inactive}}},
		{TotalSize: 30, Type: "large", Expandable: true, Blocks: []trace.Block{{Size: 10, RequestedSize: 10, State: alloc.ActiveAllocated}, {Size: 20, State: alloc.Inactive}}},
		{TotalSize: 200, AllocatedSize: 150, ActiveSize: 160, RequestedSize: 150, Type: "large"}, // blocks left out
	}
	s := NewState(tr)
	want := State{
		Segments: 4, Reserved: 400, Allocated: 200, Active: 220, Requested: 199, Blocks: 3, Pending: 20, Free: 180,
		InactiveSplit: 50, LargestFree: 70, RequestedKnown: true, requestedAllocated: 190,
	}
	if *s != want {
		t.Errorf("got %+v\nwant %+v", *s, want)
	}
	if f, want := s.Fragmentation(), (Fragmentation{0.5, 0.125, 0.05, 1 - 70.0/180}); !cmp.Equal(f, want) {
		t.Errorf("got %+v, want %+v", f, want)
	}
	groups := Groups(tr)
	if len(groups) != 3 || groups[0].Reserved != 200 || groups[1].Segments != 2 || !groups[2].Expandable {
		t.Errorf("%+v", groups)
	}
}

func TestHolders(t *testing.T) {
	tr := newTrace()
	a, b := stack(tr, "a.py:1 f"), stack(tr, "b.py:1 f")
	tr.Segments = []trace.Segment{{Blocks: []trace.Block{
		{Size: 10, State: alloc.ActiveAllocated, Stack: a},
		{Size: 30, State: alloc.ActivePendingFree, Stack: b},
		{Size: 99, State: alloc.Inactive, Stack: b},
		{Size: 25, State: alloc.ActiveAllocated, Stack: a},
		{Size: 1, State: alloc.ActiveAllocated, Stack: trace.EmptyStack},
		{Size: 2, State: alloc.ActiveAllocated},
	}}}
	want := []Holder{{a, 35, 2}, {b, 30, 1}, {trace.NoStack, 3, 2}}
	if diff := cmp.Diff(want, Holders(tr)); diff != "" {
		t.Error(diff)
	}
}

// Frames that are of no trace any more are chosen as those of a trace are.
func TestOwnFrames(t *testing.T) {
	for _, name := range []string{"variety/cppstacks", "variety/compile", "snapshots/gpt2_varlen-tight-default"} {
		tr := open(t, name+".pickle.gz")
		own := make([]bool, tr.Stacks.NumFrames())
		for i := range own {
			own[i] = frame(tr, trace.FrameID(i)).User()
		}
		shorter := 0
		for id := range trace.StackID(tr.Stacks.Len()) {
			all := Frames(tr, id)
			var want []Frame
			for _, f := range OwnPath(tr, id, own) {
				want = append(want, frame(tr, f))
			}
			if got := OwnFrames(all); !slices.Equal(got, want) {
				t.Fatalf("%s, stack %d: %v, want %v", name, id, got, want)
			}
			if len(want) < len(all) {
				shorter++
			}
		}
		if shorter == 0 {
			t.Errorf("%s: nothing is folded", name)
		}
	}
}

func TestPeakFragmentation(t *testing.T) {
	if f := PeakFragmentation(0, 0); f != nil {
		t.Errorf("nothing reserved: %v", *f)
	}
	for _, tt := range []struct {
		reserved, allocated uint64
		want                float64
	}{{100, 100, 0}, {100, 25, 0.75}, {100, 0, 1}, {100, 120, 0}} {
		if f := PeakFragmentation(tt.reserved, tt.allocated); f == nil || *f != tt.want {
			t.Errorf("%d reserved, %d allocated: %v, want %v", tt.reserved, tt.allocated, f, tt.want)
		}
	}
}
