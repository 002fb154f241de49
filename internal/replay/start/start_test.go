package start

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// The state at the first event is what is left when all events are undone.
func TestFind(t *testing.T) {
	const (
		segment, size = 0x200000, 2 << 20
		a, b          = segment, segment + 512 // a is live at the end, b is not
	)
	ev := func(action alloc.Action, addr, size uint64) trace.Event {
		return trace.Event{Action: action, Addr: addr, Size: size, Time: trace.NoTime}
	}
	allocates := ev(alloc.ActionAlloc, a, 500)
	requested, completed := ev(alloc.ActionFreeRequested, b, 300), ev(alloc.ActionFreeCompleted, b, 300)
	block := func(state alloc.BlockState) []alloc.Block {
		return []alloc.Block{{Address: b, RequestedSize: 300, State: state}}
	}
	for _, tt := range []struct {
		name   string
		events []trace.Event
		kind   string
		blocks []alloc.Block
		note   string
	}{
		{"from the beginning", []trace.Event{ev(alloc.ActionSegmentAlloc, segment, size), allocates}, Recorded, nil, ""},
		{"freed at once", []trace.Event{requested, completed, allocates}, Rebuilt, block(alloc.ActiveAllocated), "mid-run"},
		{"freed later", []trace.Event{requested, allocates, completed}, Rebuilt, block(alloc.ActiveAllocated), "mid-run"},
		{"freed before", []trace.Event{allocates, completed}, Rebuilt, block(alloc.ActivePendingFree), "mid-run"},
		{"freed and gone", []trace.Event{allocates, ev(alloc.ActionFreeRequested, b, 300)}, Rebuilt, block(alloc.ActiveAllocated), "event 1 frees 0x200200, which is not live afterwards"},
		{"freed and live", []trace.Event{allocates, ev(alloc.ActionFreeRequested, a, 500), ev(alloc.ActionFreeCompleted, a, 500)}, Rebuilt, nil, "event 2 frees 0x200000, which is live afterwards"},
		{"allocated and gone", []trace.Event{allocates, ev(alloc.ActionAlloc, b, 300)}, Rebuilt, nil, "event 1 allocates 0x200200, which is not live afterwards"},
	} {
		tr := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks(), Segments: []trace.Segment{{
			Address: segment, TotalSize: size, AllocatedSize: 512, ActiveSize: 512, RequestedSize: 500, Type: "small",
			Blocks: []trace.Block{{Address: a, Size: 512, RequestedSize: 500, State: alloc.ActiveAllocated}, {Address: b, Size: size - 512, State: alloc.Inactive}},
		}}}
		for _, e := range tt.events {
			tr.Events.Append(e)
		}
		s := Find(tr)
		if s.Kind != tt.kind || !strings.Contains(strings.Join(s.Notes, "\n"), tt.note) {
			t.Errorf("%s: start %s, notes %q; want %s, %q", tt.name, s.Kind, s.Notes, tt.kind, tt.note)
		}
		var got []alloc.Block
		for i := range s.Segments {
			got = append(got, s.Segments[i].Blocks...)
		}
		if d := cmp.Diff(tt.blocks, got); d != "" {
			t.Errorf("%s: blocks at the start (-want +got):\n%s", tt.name, d)
		}
		if reserved := uint64(size); tt.kind == Rebuilt && s.Reserved() != reserved {
			t.Errorf("%s: %d reserved, want %d", tt.name, s.Reserved(), reserved)
		}
	}
}

// mapped returns a trace of mappings alone, that ends with the given runs.
func mapped(runs []alloc.Span, events ...trace.Event) *trace.Trace {
	tr := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
	for _, r := range runs {
		tr.Segments = append(tr.Segments, trace.Segment{Address: r.Addr, TotalSize: r.Size, Type: "large", Expandable: true})
	}
	for _, e := range events {
		e.Time = trace.NoTime
		tr.Events.Append(e)
	}
	return tr
}

// What is mapped is cut out of the runs of the end, and what is unmapped comes back, once.
func TestFindMapped(t *testing.T) {
	const base, piece = 0x40000000, 20 << 20
	ev := func(action alloc.Action, at, n uint64) trace.Event {
		return trace.Event{Action: action, Addr: base + at*piece, Size: n * piece}
	}
	maps := func(at, n uint64) trace.Event { return ev(alloc.ActionSegmentMap, at, n) }
	unmaps := func(at, n uint64) trace.Event { return ev(alloc.ActionSegmentUnmap, at, n) }
	run := func(at, n uint64) alloc.Span { return alloc.Span{Addr: base + at*piece, Size: n * piece} }
	for name, tt := range map[string]struct {
		end    []alloc.Span
		events []trace.Event
		want   []alloc.Span
	}{
		"the middle of a run":         {[]alloc.Span{run(0, 9)}, []trace.Event{maps(3, 2)}, []alloc.Span{run(0, 3), run(5, 4)}},
		"the rest of several runs":    {[]alloc.Span{run(0, 2), run(3, 2), run(6, 2)}, []trace.Event{maps(1, 6)}, []alloc.Span{run(0, 1), run(7, 1)}},
		"what was between":            {[]alloc.Span{run(0, 2), run(3, 2)}, []trace.Event{unmaps(2, 1)}, []alloc.Span{run(0, 5)}},
		"what is there all the same":  {[]alloc.Span{run(0, 5)}, []trace.Event{unmaps(2, 1)}, []alloc.Span{run(0, 5)}},
		"nothing":                     {[]alloc.Span{run(0, 9)}, []trace.Event{unmaps(3, 0), maps(4, 0), unmaps(0, 0)}, []alloc.Span{run(0, 9)}},
		"the same twice":              {[]alloc.Span{run(0, 1)}, []trace.Event{unmaps(2, 1), unmaps(2, 1)}, []alloc.Span{run(0, 1), run(2, 1)}},
		"what comes and goes":         {[]alloc.Span{run(0, 1)}, []trace.Event{maps(2, 1), unmaps(2, 1)}, []alloc.Span{run(0, 1)}},
		"what is nowhere at the end":  {[]alloc.Span{run(4, 1)}, []trace.Event{maps(1, 1)}, []alloc.Span{run(4, 1)}},
		"more than is there, at once": {[]alloc.Span{run(4, 1)}, []trace.Event{unmaps(0, 9)}, []alloc.Span{run(0, 9)}},
	} {
		var got []alloc.Span
		for _, s := range Find(mapped(tt.end, tt.events...)).Segments {
			got = append(got, alloc.Span{Addr: s.Address, Size: s.TotalSize})
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestManyMapped: hundreds of thousands of pieces, in no order, are put back and taken away; what looked at all of them
// for each took more than go test waits.
func TestManyMapped(t *testing.T) {
	const n, base, piece = 300_000, 0x40000000, 20 << 20
	rng := rand.New(rand.NewPCG(1, 1))
	var events []trace.Event
	for _, action := range []alloc.Action{alloc.ActionSegmentMap, alloc.ActionSegmentUnmap} {
		for _, i := range rng.Perm(n) {
			events = append(events, trace.Event{Action: action, Addr: base + 2*uint64(i)*piece, Size: piece})
		}
	}
	if s := Find(mapped(nil, events...)); s.Kind != Recorded {
		t.Errorf("%d segments before the first event: %s", len(s.Segments), s.Kind)
	}
}
