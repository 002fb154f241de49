package verify

import (
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
	"github.com/ashlar-mem/ashlar/settings"
)

// watched is the recorded device, watched for what its answers show of the
// limit. The device answers by the recording; every request it serves shows
// that the limit allowed it, every one it refuses that the limit did not,
// unless the device had no room.
type watched struct {
	*recorded.Driver
	bounds
	memory   *deviceMemory
	settings settings.Settings
	rules    alloc.Rules

	reserved uint64
	request  uint64 // size that this call asks for
	maps     int    // mappings since the call began or released something
	cut      bool   // the first event may be amid a call
	fails    bool   // this call fails in the recording
	refused  bool   // something was, in this call
	unasked  bool   // this call gets memory that is mapped already, see grown
}

// bounds are what is known of the limit: it is low or more, and high or less, or
// sure or less if what may have been collected is left aside.
type bounds struct{ low, high, sure uint64 }

func newBounds() bounds { return bounds{high: math.MaxUint64, sure: math.MaxUint64} }

// segment returns the size that the engine compares with the limit in this
// call.
func (w *watched) segment() uint64 { return w.rules.SegmentSize(w.rules.Round(w.request)) }

func (w *watched) begin() {
	w.maps, w.refused, w.unasked = 0, false, false
	w.BeginOp(-1)
}

func (w *watched) observe(e alloc.Event) {
	switch e.Action {
	case alloc.ActionSegmentAlloc:
		w.reserved += e.Size
		w.maps++
	case alloc.ActionSegmentMap:
		w.reserved += e.Size
		w.maps++
	case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
		w.reserved -= e.Size
		w.maps = 0
	case alloc.ActionAlloc:
		// After a refusal the cached blocks are not searched again, so that the
		// limit allowed what was mapped already.
		if w.unasked || w.refused && w.maps == 0 {
			w.low = max(w.low, w.reserved+w.segment())
		}
	}
}

// grown records where an expandable segment is to grow. If enough is mapped there
// that the search for a free block passed over, the engine does not ask the
// driver, but it checks the limit first.
func (w *watched) grown(d alloc.Decision) {
	switch d := d.(type) {
	case alloc.Growth:
		w.unasked = d.Free >= d.Rounded
	}
}

// learn records the driver's answer to a request for device memory.
func (w *watched) learn(bytes uint64, err error) {
	if err != nil {
		w.refused = true
	}
	if w.maps > 0 {
		return // within one attempt the limit is looked at once
	}
	if err == nil {
		w.low = max(w.low, w.reserved+w.segment())
		return
	}
	if device, known := w.memory.near(w.Cursor()); known && w.reserved+bytes > device {
		return // the device refused, whatever the limit was
	}
	if w.cut && w.Cursor() == 0 && !w.NextIs(alloc.ActionOOM) {
		return // refused before the first event, with more reserved
	}
	above := w.reserved + w.segment() - 1
	w.high = min(w.high, above)
	// Where garbage is collected perhaps nothing was refused: a collection looks
	// like a flush.
	if w.fails || w.settings.GarbageCollectionThreshold == 0 || !w.NextIs(alloc.ActionSegmentFree) {
		w.sure = min(w.sure, above)
	}
}

func (w *watched) Malloc(size, stream uint64) (uint64, error) {
	addr, err := w.Driver.Malloc(size, stream)
	w.learn(size, err)
	return addr, err
}

func (w *watched) Map(addr, size, granule uint64) error {
	err := w.Driver.Map(addr, size, granule)
	w.learn(size, err)
	return err
}

// Reserve makes no reservation for a mapping that the recording refuses: the
// engine checks the limit first.
func (w *watched) Reserve(size, stream uint64) (uint64, error) {
	if !w.NextIs(alloc.ActionSegmentMap) {
		err := w.Refuse("addresses for stream %d", stream)
		rounded := w.rules.Round(w.request)
		w.learn(w.rules.MappedSize(rounded, w.rules.Large(rounded)), err)
		return 0, err
	}
	return w.Driver.Reserve(size, stream)
}

// limit returns the range that the answers leave; nothing if they contradict
// each other, because the device and not a limit refused.
func (b bounds) limit() *replay.Limit {
	l := &replay.Limit{Min: b.low}
	if b.high != math.MaxUint64 && b.high >= b.low {
		l.Max = b.high
	}
	return l
}
