package start

import (
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
