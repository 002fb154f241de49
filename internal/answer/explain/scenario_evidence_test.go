package explain_test

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// checkEvidence compares the numbers.
func (s *story) checkEvidence(r *explain.Report, w way, fail func(string, ...any)) {
	e := &r.Evidence
	there := s.available
	if w.source == "inferred" {
		there = s.reserved + s.segment - 1
	}
	var gap *uint64
	if s.need() > there {
		more := s.need() - there
		gap = &more
	}
	device := uint64(deviceMemory) - s.reserved
	if w.device {
		device = s.available - s.reserved
	}
	for _, n := range []struct {
		name string
		got  *uint64
		want *uint64
	}{
		{"live", e.Live, &s.live},
		{"request", e.Request, &s.rounded}, // the event has the rounded size
		{"rounded", e.Rounded, &s.rounded},
		{"segment", e.Segment, &s.segment},
		{"free", e.Free, &s.free},
		{"usable", e.FreeUsable, &s.usable},
		{"largest usable", e.LargestUsable, &s.largest},
		{"pending", e.Pending, &s.pending},
		{"reserved", e.Reserved, &s.reserved},
		{"device free", e.DeviceFree, &device},
		{"available", e.Available, &there},
		{"gap", e.Gap, gap},
	} {
		if text(n.got) != text(n.want) || n.got != nil && *n.got != *n.want {
			fail("%s: %s, want %s", n.name, text(n.got), text(n.want))
		}
	}
}

// checkDump compares the evidence with the segments of the snapshot, which was
// taken where the request failed.
func checkDump(r *explain.Report, tr *trace.Trace, fail func(string, ...any)) {
	var live, free, largest, reserved, pools, streams uint64
	for i := range tr.Segments {
		reserved += tr.Segments[i].TotalSize
		for _, b := range tr.Segments[i].Blocks {
			switch b.State {
			case alloc.ActiveAllocated:
				live += b.Size
			case alloc.Inactive:
				free += b.Size
				largest = max(largest, b.Size)
				if tr.Segments[i].Pool != (alloc.PoolID{}) {
					pools += b.Size
				}
				if tr.Segments[i].Stream != r.Failure.Stream {
					streams += b.Size
				}
			}
		}
	}
	e := r.Evidence
	if *e.FreePools != pools || *e.FreeStreams != streams {
		fail("the snapshot has %d free in private pools and %d on other streams; the report %d and %d", pools, streams, *e.FreePools, *e.FreeStreams)
	}
	if *e.Live != live || *e.Free != free || *e.LargestFree != largest || *e.Reserved != reserved {
		fail("the snapshot has %d live, %d free, at most %d in one piece, %d reserved; the report %d, %d, %d, %d",
			live, free, largest, reserved, *e.Live, *e.Free, *e.LargestFree, *e.Reserved)
	}
}

// checkPinned compares who pins what.
func (s *story) checkPinned(r *explain.Report, tr *trace.Trace, w way, fail func(string, ...any)) {
	if s.pinned == nil {
		return
	}
	if len(r.Pinners) != len(s.pinned) {
		fail("%d pinned segments, want %d", len(r.Pinners), len(s.pinned))
		return
	}
	for i, want := range s.pinned {
		got := r.Pinners[i]
		var by []string
		var live uint64
		count := 0
		for _, b := range got.Blocks {
			by = append(by, fmt.Sprintf("%s %d %s", units.Size(b.Bytes), b.Count, b.Site))
			live, count = live+b.Bytes, count+b.Count
		}
		if got.Size != want.size || got.Stuck != want.stuck || got.Live != want.size-want.stuck || live != got.Live || count != got.Count {
			fail("pinned %d: %+v, want %+v", i, got, want)
		}
		if !w.midrun && !slices.Equal(by, want.by) { // blocks from before the recording have no stack
			fail("pinned %d by %q, want %q", i, by, want.by)
		}
		if !slices.ContainsFunc(tr.Segments, func(s trace.Segment) bool { return s.Address == got.Address && s.TotalSize == got.Size }) {
			fail("pinned %d: the snapshot has no segment at %#x", i, got.Address)
		}
	}
}
