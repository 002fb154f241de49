package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// The size of the device and the addresses of its expandable segments follow
// from what was mapped where.
func TestReservations(t *testing.T) {
	const (
		mib  = 1 << 20
		base = 0x302000000
	)
	run := func(at, size, stream uint64, large bool) alloc.Segment {
		return alloc.Segment{Address: base + at*mib, TotalSize: size * mib, Stream: stream, Large: large, Expandable: true}
	}
	ev := func(a alloc.Action, at, size, stream uint64) trace.Event {
		return trace.Event{Action: a, Addr: base + at*mib, Size: size * mib, Stream: stream}
	}
	mapping := func(at, size, stream uint64) trace.Event { return ev(alloc.ActionSegmentMap, at, size, stream) }
	unmapping := func(at, size, stream uint64) trace.Event {
		return ev(alloc.ActionSegmentUnmap, at, size, stream)
	}
	oom := func(free uint64) trace.Event {
		return trace.Event{Action: alloc.ActionOOM, Addr: free * mib, Size: 512 * mib}
	}
	span := func(at, size uint64) alloc.Span { return alloc.Span{Addr: base + at*mib, Size: size * mib} }
	tests := []struct {
		name   string
		start  []alloc.Segment
		events []trace.Event
		memory uint64 // MiB
		spans  []alloc.Span
	}{
		{"nothing tells", nil, []trace.Event{mapping(0, 20, 0), mapping(20, 40, 0)}, unlimited / mib, nil},
		{"a large device is larger than the usual", nil, []trace.Event{mapping(0, 200<<10, 0)}, 400 << 10, nil},
		{"the next segment", nil, []trace.Event{mapping(0, 2, 0), mapping(1152, 20, 0)}, 1024, nil},
		{"the next segment, of another stream", nil, []trace.Event{mapping(0, 40, 0), mapping(1152, 40, 1)}, 1140 * 8 / 9, nil},
		{"what was free", nil, []trace.Event{mapping(0, 40, 0), mapping(1152, 40, 1), oom(920)}, 1000, nil},
		{"what was free, in front of others", nil, []trace.Event{mapping(0, 2, 0), mapping(1152, 40, 1), oom(800)}, 1024, nil},
		{"the same stream beyond what is mapped", nil, []trace.Event{mapping(0, 40, 0), mapping(1152, 40, 0)}, 1140 * 8 / 9, nil},
		{"a hole is no end", nil, []trace.Event{mapping(0, 400, 0), unmapping(100, 200, 0), mapping(100, 100, 0), mapping(400, 20, 0)}, unlimited / mib, nil},
		{"addresses that are used again", nil, []trace.Event{
			mapping(0, 2, 0), mapping(1152, 20, 0), unmapping(1152, 20, 0), mapping(1152, 2, 1), mapping(2304, 20, 1),
		}, 1024, nil},
		{
			"before the first event",
			[]alloc.Segment{run(0, 2, 0, false), run(1152, 20, 0, true), run(1252, 20, 0, true), run(2312, 20, 1, true)},
			nil, 1024,
			[]alloc.Span{span(0, 1152), span(1152, 1160), span(2312, 1160)},
		},
		{
			"the front was not mapped",
			[]alloc.Segment{run(0, 2, 0, false), run(1192, 1000, 0, true), run(2312, 2, 1, false)},
			[]trace.Event{mapping(1152, 20, 0)},
			1024,
			[]alloc.Span{span(0, 1152), span(1152, 1160), span(2312, 1152)},
		},
		{
			"the front of another one",
			[]alloc.Segment{run(4000, 1000, 0, true)},
			[]trace.Event{mapping(0, 20, 0)},
			unlimited / mib,
			[]alloc.Span{span(4000, 294920)},
		},
	}
	for _, test := range tests {
		tr := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
		for _, e := range test.events {
			tr.Events.Append(e)
		}
		start := &start.State{Kind: start.Rebuilt, Segments: test.start}
		f := findReservations(tr, start, settings.Default(), newDeviceMemory(newRows(tr), start))
		if got := f.memory / mib; got != test.memory {
			t.Errorf("%s: a device of %d MiB, want %d", test.name, got, test.memory)
		}
		if d := cmp.Diff(test.spans, f.spans(f.memory)); d != "" && len(test.spans) > 0 {
			t.Errorf("%s (-want +got):\n%s", test.name, d)
		}
	}
}
