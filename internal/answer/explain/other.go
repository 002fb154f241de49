package explain

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

// OtherFailure compares a message with the failed requests of a file: what was
// requested, allocated, reserved and allowed. It returns a sentence if the message
// is about another failure than the file's last, else "". A file without a failed
// request is compared as it ends.
func OtherFailure(r *run.Checked, m *message.OOM) string {
	if m.Backend != message.Native || m.Device >= 0 && m.Device != r.Trace.Device {
		return ""
	}
	ooms := failuresOf(r)
	if len(ooms) == 0 {
		if same, known := input.SameMoment(r.Trace, m); same || !known {
			return ""
		}
		end := r.Timeline.LiveAtEnd().Totals
		return fmt.Sprintf("The message is about another moment: %s allocated there, %s at the end of the file, in which no request fails.",
			units.Size(m.AllocatedBytes.Mid), units.Size(end.Allocated))
	}
	last := &ooms[len(ooms)-1]
	differs := last.differences(r, m)
	if len(differs) == 0 {
		return ""
	}
	for i := len(ooms) - 2; i >= 0; i-- {
		if len(ooms[i].differences(r, m)) == 0 {
			return fmt.Sprintf("The message is about the request that failed at event %s; the last one to fail, at event %s, is explained.",
				count(ooms[i].event), count(last.event))
		}
	}
	return fmt.Sprintf("The message is about another failure than the file (%s). The file is explained without it.", strings.Join(differs, "; "))
}

// recordedFailure is a request that fails in a file.
type recordedFailure struct {
	event   int
	segment uint64 // asked of the driver
	totals  timeline.Totals
}

func failuresOf(r *run.Checked) []recordedFailure {
	rules := alloc.RulesOf(r.Program.Settings, r.Program.Version)
	var all []recordedFailure
	for c := r.Timeline.Cursor(); c.Next(); {
		if c.Event.Action == alloc.ActionOOM {
			all = append(all, recordedFailure{c.Index, rules.SegmentSize(rules.Round(c.Event.Size)), c.Totals})
		}
	}
	return all
}

// differences names what a message says otherwise.
func (f *recordedFailure) differences(r *run.Checked, m *message.OOM) []string {
	var all []string
	compare := func(what string, said *units.Range, has uint64) {
		if said != nil && !said.Contains(has) {
			all = append(all, fmt.Sprintf("%s %s, not %s", what, units.Size(said.Mid), units.Size(has)))
		}
	}
	compare("tried", whole(m.TriedBytes, m.Backend), f.segment)
	live := m.AllocatedBytes
	if live != nil && m.PrivatePoolBytes != nil { // spec 13.1: free, whatever the wording
		inTensors := live.Sub(*m.PrivatePoolBytes)
		live = &inTensors
	}
	if r.Timeline.Exact {
		compare("allocated", live, f.totals.Allocated)
	}
	if reserved, ok := m.Reserved(); ok && !r.Timeline.AtLeast {
		compare("reserved", &reserved, f.totals.Reserved)
	}
	if limit := whatif.LimitOf(r); m.LimitBytes != nil && limit.Min != nil &&
		(m.LimitBytes.High < *limit.Min || limit.Max != nil && m.LimitBytes.Low > *limit.Max) {
		all = append(all, fmt.Sprintf("allowed %s, not %s", units.Size(m.LimitBytes.Mid), limitText(limit)))
	}
	return all
}

// limitText says what a file shows of its limit.
func limitText(l whatif.Limit) string {
	if l.Max == nil {
		return "at least " + units.SizeUp(*l.Min)
	}
	return fmt.Sprintf("between %s and %s", units.SizeUp(*l.Min), units.Size(*l.Max))
}

// sameNumbers reports whether two messages have the same numbers, as far as both
// have them.
func sameNumbers(a, b *message.OOM) bool {
	same := func(x, y *units.Range) bool { return x == nil || y == nil || *x == *y }
	return (a.Device < 0 || b.Device < 0 || a.Device == b.Device) &&
		same(a.TriedBytes, b.TriedBytes) && same(a.AllocatedBytes, b.AllocatedBytes) && same(a.TotalBytes, b.TotalBytes) &&
		same(a.ReservedBytes, b.ReservedBytes) && same(a.ReservedUnallocatedBytes, b.ReservedUnallocatedBytes)
}
