package replay

import (
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/recorded"
)

// Limit is what a trace tells about the cap on reserved memory: it was at
// least Min, and below Max if a request was refused. The cap itself is in no
// snapshot.
type Limit struct {
	Min uint64
	Max uint64 // 0: nothing was ever refused
}

// watched is the recorded device, watched for what its answers tell about the
// limit. The device answers by the recording; every request it serves shows
// that the limit allowed it, every one it refuses that the limit did not.
type watched struct {
	*recorded.Driver
	bounds
	reserved uint64
	segment  uint64 // size the engine compares with the limit in this call
	maps     int    // mappings since the call began or released something
}

type bounds struct{ low, high uint64 }

func newBounds() bounds { return bounds{high: math.MaxUint64} }

func (w *watched) begin() {
	w.maps = 0
	w.BeginOp(-1)
}

func (w *watched) observe(e alloc.Event) {
	switch e.Action {
	case alloc.ActionSegmentAlloc:
		w.reserved += e.Size
	case alloc.ActionSegmentMap:
		w.reserved += e.Size
		w.maps++
	case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
		w.reserved -= e.Size
		w.maps = 0
	}
}

// learn notes the answer to a request for memory.
func (w *watched) learn(err error) {
	if w.maps > 0 {
		return // within one attempt the limit is looked at once
	}
	if err == nil {
		w.low = max(w.low, w.reserved+w.segment)
		return
	}
	if free, told := w.NextOOM(); !told || free >= w.segment {
		w.high = min(w.high, w.reserved+w.segment-1)
	}
}

func (w *watched) Malloc(size, stream uint64) (uint64, error) {
	addr, err := w.Driver.Malloc(size, stream)
	w.learn(err)
	return addr, err
}

func (w *watched) Map(addr, size, granule uint64) error {
	err := w.Driver.Map(addr, size, granule)
	w.learn(err)
	return err
}

// Reserve makes no reservation for a mapping that the recording refuses: the
// limit is looked at before.
func (w *watched) Reserve(size, stream uint64) (uint64, error) {
	if !w.NextIs(recorded.SegmentMap) {
		err := w.Refuse("addresses for stream %d", stream)
		w.learn(err)
		return 0, err
	}
	return w.Driver.Reserve(size, stream)
}

// limit is the range that the answers leave; nothing if they contradict each
// other, because the device and not a limit refused.
func (b bounds) limit() *Limit {
	l := &Limit{Min: b.low}
	if b.high != math.MaxUint64 && b.high >= b.low {
		l.Max = b.high
	}
	return l
}
