package input

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// LastMessage returns the last message about a device, which is the one that
// ended the program, and how many there are. The error is an
// *[OtherDeviceError].
func (in *Input) LastMessage(d Device) (last *message.OOM, n int, err error) {
	for _, m := range in.Messages {
		if d.Covers(m.Device) {
			last = m
			n++
		}
	}
	if last == nil {
		return nil, 0, &OtherDeviceError{in.Name, "out-of-memory message", d.Number}
	}
	return last, n, nil
}

// LastDump returns the last dump of a device, and how many there are.
func (in *Input) LastDump(d Device) (last *stats.Dump, n int, err error) {
	for _, dump := range in.Dumps {
		if d.Covers(dump.Device) {
			last = dump
			n++
		}
	}
	if last == nil {
		return nil, 0, fmt.Errorf("%s has no dump of device %d; give that of the device that failed", in.Name, d.Number)
	}
	return last, n, nil
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
