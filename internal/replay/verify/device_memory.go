package verify

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
)

// deviceMemory is what the events show of the device's memory.
type deviceMemory struct {
	peak uint64 // the most that was reserved
	// ooms are the rows of failed requests and what the device had for the
	// allocator then: what was reserved and what was free.
	ooms []memoryAtOOM
}

type memoryAtOOM struct {
	row   int
	bytes uint64
}

// maxDeviceBytes is more than any device has.
const maxDeviceBytes = 1 << 48

func newDeviceMemory(r *rows, start *start.State) *deviceMemory {
	reserved := start.Reserved()
	out := &deviceMemory{peak: reserved}
	for i := range r.Len() {
		switch size := r.trace.Events.Size.At(r.event(i)); r.Action(i) {
		case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
			reserved += size
			out.peak = max(out.peak, reserved)
		case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
			reserved -= min(size, reserved)
		case alloc.ActionOOM:
			if free := r.addr(i); free < maxDeviceBytes {
				out.ooms = append(out.ooms, memoryAtOOM{i, free + reserved})
			}
		}
	}
	return out
}

// near is what the device had around a row: at the next failed
// request, or else at the last one. Other processes may have changed it in
// between.
func (m *deviceMemory) near(row int) (bytes uint64, known bool) {
	if len(m.ooms) == 0 {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(m.ooms, row, func(o memoryAtOOM, row int) int { return cmp.Compare(o.row, row) })
	return m.ooms[min(i, len(m.ooms)-1)].bytes, true
}

// least returns what the device has at least.
func (m *deviceMemory) least() uint64 {
	least := m.peak
	for _, o := range m.ooms {
		least = max(least, o.bytes)
	}
	return min(least, maxDeviceBytes)
}
