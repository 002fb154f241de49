package trace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
)

// A block keeps the words of its file, known or not.
func TestBlockState(t *testing.T) {
	for _, tt := range []struct {
		name string
		want alloc.BlockState
	}{
		{"inactive", alloc.Inactive},
		{"active_allocated", alloc.ActiveAllocated},
		{"active_pending_free", alloc.ActivePendingFree},
		{"active_awaiting_free", alloc.ActivePendingFree},
		{"", OtherState},
		{"asleep", OtherState},
	} {
		b := Block{State: alloc.ActiveAllocated, StateText: "stale"}
		b.SetState(tt.name)
		if b.State != tt.want || b.StateName() != tt.name {
			t.Errorf("%q is %v and named %q, want %v", tt.name, b.State, b.StateName(), tt.want)
		}
	}
}

// A segment of the engine is the same after a way through the form of a file.
func TestEngineSegment(t *testing.T) {
	want := alloc.Segment{
		Device: 3, Address: 4096, TotalSize: 4096, AllocatedSize: 1024, ActiveSize: 1536, RequestedSize: 1100, Stream: 7,
		Large: true, Pool: alloc.PoolID{Second: 2}, Expandable: true,
		Blocks: []alloc.Block{
			{Address: 4096, Size: 1024, RequestedSize: 1000, State: alloc.ActiveAllocated},
			{Address: 5120, Size: 512, RequestedSize: 100, State: alloc.ActivePendingFree},
			{Address: 5632, Size: 2560, RequestedSize: 9, State: alloc.Inactive},
		},
	}
	s := FromEngine(&want, map[uint64]StackID{4096: 5, 5632: 6})
	if diff := cmp.Diff(want, s.ToEngine(3)); diff != "" {
		t.Error(diff)
	}
	if s.Stack != EmptyStack || s.Blocks[0].Stack != 5 || s.Blocks[1].Stack != EmptyStack || s.Blocks[2].Stack != EmptyStack {
		t.Errorf("stacks of %+v", s)
	}
}

// Old files do not tell where blocks are, and a state that nobody knows is
// inactive for the engine.
func TestToEngineOld(t *testing.T) {
	s := Segment{Address: 4096, TotalSize: 1536, Type: "small", Blocks: []Block{
		{Size: 512, State: alloc.ActiveAllocated}, {Size: 512, State: OtherState, StateText: "asleep"}, {Size: 512},
	}}
	want := []alloc.Block{{Address: 4096, Size: 512, State: alloc.ActiveAllocated}, {Address: 4608, Size: 512}, {Address: 5120, Size: 512}}
	if diff := cmp.Diff(want, s.ToEngine(0).Blocks); diff != "" {
		t.Error(diff)
	}
}
