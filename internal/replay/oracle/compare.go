package oracle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
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
	got := v.run.allocator.Stats().Map()
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
	v.differ(replay.DiffStatistic, fmt.Sprintf("at checkpoint %d, after this operation, %d statistics differ, the first is %s", v.checkpoints, len(names), first),
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
		v.differ(replay.DiffEvent, fmt.Sprintf("%d events are missing at the end", len(v.rec.Trace)-v.events), e.String(),
			"no further event", verify.AddressOf(e.Action, e.Addr))
	} else {
		v.compareSegments(slices.DeleteFunc(v.run.allocator.Segments(), func(s alloc.Segment) bool { return s.Lost }))
	}
	if v.diff != nil {
		v.diff.State = v.surroundings(v.addrs...)
	}
}

func (v *verifier) compareSegments(got []alloc.Segment) {
	if d := verify.CompareSegments(v.rec.Segments, got, false); d != nil {
		v.differ(replay.DiffSegment, d.What, d.Want, d.Got, d.Addrs...)
	}
}

// processes matches the list of processes in an out-of-memory message. Who else
// used the device is in no recording (spec 13.1 item 2).
var processes = regexp.MustCompile(`(?:Including non-PyTorch memory, this process|Process \d+) has [0-9.]+ (?:bytes|KiB|MiB|GiB) memory in use\. `)

func withoutProcesses(message string) string { return processes.ReplaceAllString(message, "") }
