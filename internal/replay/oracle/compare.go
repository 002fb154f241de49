package replay

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
)

// checkpoint compares the statistics at every checkpoint taken after n
// operations.
func (v *verifier) checkpoint(n int) {
	for v.diff == nil && v.checkpoints < len(v.rec.Checkpoints) && v.rec.Checkpoints[v.checkpoints].Ops == n {
		v.compareStats(v.rec.Checkpoints[v.checkpoints].Stats)
		if v.diff == nil {
			v.checkpoints++
		}
	}
}

// compareStats compares all statistics that either side has; a key that is
// absent is 0.
func (v *verifier) compareStats(want map[string]int64) {
	got := v.run.a.Stats().Map()
	keys := map[string]bool{}
	for k, x := range want {
		if got[k] != x {
			keys[k] = true
		}
	}
	for k, x := range got {
		if want[k] != x {
			keys[k] = true
		}
	}
	if len(keys) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(keys))
	first := names[0]
	v.differ(DiffStatistic, fmt.Sprintf("at checkpoint %d, after this operation, %d statistics differ, the first is %s", v.checkpoints, len(names), first),
		fmt.Sprint(want[first]), fmt.Sprint(got[first]))
	v.diff.State = v.surroundings()
	for _, k := range names[1:] {
		v.diff.State = append(v.diff.State, fmt.Sprintf("%s: expected %d, got %d", k, want[k], got[k]))
	}
}

// finish compares what is left when all operations are done.
func (v *verifier) finish() {
	if v.diff != nil {
		return
	}
	if v.events < len(v.rec.Trace) {
		e := v.rec.Trace[v.events]
		v.differ(DiffEvent, fmt.Sprintf("%d events are missing at the end", len(v.rec.Trace)-v.events), e.String(),
			"no further event", addressOf(e.Action, e.Addr))
	} else {
		v.compareSegments(slices.DeleteFunc(v.run.a.Segments(), func(s alloc.Segment) bool { return s.Lost }))
	}
	if v.diff != nil {
		v.diff.State = v.surroundings(v.addrs...)
	}
}

func (v *verifier) compareSegments(got []alloc.Segment) {
	if d := segmentDifference(v.rec.Segments, got, false); d != nil {
		v.differ(DiffSegment, d.what, d.want, d.got, d.addrs...)
	}
}

// mismatch is the first thing that differs between two lists of segments.
type mismatch struct {
	what, want, got string
	addrs           []uint64
}

// segmentDifference compares all fields of all segments and blocks. With stale
// set the requested size of free blocks that were not used since the beginning
// is not compared: it is a remainder of a use before.
func segmentDifference(want, got []alloc.Segment, stale bool) *mismatch {
	for i := range min(len(want), len(got)) {
		if d := oneSegmentDifference(&want[i], &got[i], stale); d != nil {
			return d
		}
	}
	number := fmt.Sprintf("%d segments at the end instead of %d", len(got), len(want))
	switch {
	case len(got) < len(want):
		s := &want[len(got)]
		return &mismatch{number, segmentText(s), "no further segment", []uint64{s.Address}}
	case len(got) > len(want):
		s := &got[len(want)]
		return &mismatch{number, "no further segment", segmentText(s), []uint64{s.Address}}
	}
	return nil
}

func oneSegmentDifference(want, got *alloc.Segment, stale bool) *mismatch {
	for _, f := range []struct {
		name      string
		want, got any
	}{
		{"address", want.Address, got.Address},
		{"device", want.Device, got.Device},
		{"total_size", want.TotalSize, got.TotalSize},
		{"allocated_size", want.AllocatedSize, got.AllocatedSize},
		{"active_size", want.ActiveSize, got.ActiveSize},
		{"requested_size", want.RequestedSize, got.RequestedSize},
		{"stream", want.Stream, got.Stream},
		{"segment_type", want.Type(), got.Type()},
		{"segment_pool_id", want.Pool, got.Pool},
		{"is_expandable", want.Expandable, got.Expandable},
		{"number of blocks", len(want.Blocks), len(got.Blocks)},
	} {
		if f.want != f.got {
			return &mismatch{
				fmt.Sprintf("at the end, segment %#x: %s", want.Address, f.name),
				fmt.Sprintf("%v in %s", f.want, segmentText(want)), fmt.Sprintf("%v in %s", f.got, segmentText(got)),
				[]uint64{want.Address, got.Address},
			}
		}
	}
	for i := range want.Blocks {
		w, g := want.Blocks[i], got.Blocks[i]
		if stale && g.State == alloc.Inactive && g.RequestedSize == 0 {
			g.RequestedSize = w.RequestedSize
		}
		if w != g {
			return &mismatch{
				fmt.Sprintf("at the end, block %d of segment %#x", i, want.Address),
				blockText(w), blockText(g),
				[]uint64{w.Address, g.Address},
			}
		}
	}
	return nil
}

func segmentText(s *alloc.Segment) string {
	return fmt.Sprintf("%s segment %#x of %d bytes, allocated %d, active %d, stream %d, pool %v", s.Type(), s.Address, s.TotalSize,
		s.AllocatedSize, s.ActiveSize, s.Stream, s.Pool)
}

func blockText(b alloc.Block) string {
	return fmt.Sprintf("%#x %s, size %d, requested %d", b.Address, b.State, b.Size, b.RequestedSize)
}

// processes matches the list of processes in an out-of-memory message. Who else
// used the device is in no recording (spec 13.1 item 2).
var processes = regexp.MustCompile(`(?:Including non-PyTorch memory, this process|Process \d+) has [0-9.]+ (?:bytes|KiB|MiB|GiB) memory in use\. `)

func withoutProcesses(message string) string { return processes.ReplaceAllString(message, "") }
