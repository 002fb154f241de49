package input

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// Failed returns the message about a device that says most about why a job
// ended, and all that are about it. Of one process that is the last one, the last
// whole one if the log is cut: it survived the others. Of several processes the one that ended first is taken, as
// the others may only have followed it. The error is an *[OtherDeviceError].
func (in *Input) Failed(d Device) (failed *message.OOM, all []*message.OOM, err error) {
	type process struct{ rank, pid int }
	last := map[process]*message.OOM{}
	for _, m := range in.Messages {
		if d.Covers(m.Device) {
			all = append(all, m)
			by := process{m.Rank, m.PID}
			if before := last[by]; before == nil || before.Cut || !m.Cut {
				last[by] = m
			}
		}
	}
	if len(all) == 0 {
		return nil, nil, &OtherDeviceError{in.Name, "out-of-memory message", d.Number}
	}
	for _, m := range last {
		// What says nothing about its process may repeat what a process said.
		known := m.Rank >= 0 || m.PID > 0
		if failed == nil || known && !(failed.Rank >= 0 || failed.PID > 0) || known == (failed.Rank >= 0 || failed.PID > 0) && m.Line < failed.Line {
			failed = m
		}
	}
	return failed, all, nil
}

// DumpsOf returns the dumps of a device, of which there is at least one.
func (in *Input) DumpsOf(d Device) ([]*stats.Dump, error) {
	var all []*stats.Dump
	for _, dump := range in.Dumps {
		if d.Covers(dump.Device) {
			all = append(all, dump)
		}
	}
	if all == nil {
		return nil, fmt.Errorf("%s has no dump of device %d; give that of the device that failed", in.Name, d.Number)
	}
	return all, nil
}

// SameMoment reports whether the segments of a trace are those of the failure
// that a message is about, by what is allocated. known is false if the message
// does not say how much that was.
//
// What PyTorch prints as allocated includes, from 2.4 on, the free memory in
// private pools, and that is printed beside it (spec 13.1). So a message with
// that number is compared with both. One without it is of an older PyTorch, of
// a run without such memory, or cut: allocated may then stand for either.
func SameMoment(t *trace.Trace, m *message.OOM) (same, known bool) {
	if m.AllocatedBytes == nil {
		return false, false
	}
	var live, cached uint64
	for i := range t.Segments {
		s := &t.Segments[i]
		live += s.AllocatedSize
		if s.Pool != (alloc.PoolID{}) {
			cached += s.TotalSize - max(s.ActiveSize, s.AllocatedSize)
		}
	}
	if m.PrivatePoolBytes != nil {
		return m.PrivatePoolBytes.Contains(cached) && m.AllocatedBytes.Contains(live+cached), true
	}
	return m.AllocatedBytes.Contains(live) || m.AllocatedBytes.Contains(live+cached), true
}
