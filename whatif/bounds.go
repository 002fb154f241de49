package whatif

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/snapshot/side"
	"github.com/ashlar-mem/ashlar/timeline"
)

// Where a Bound comes from.
const (
	Given    = "given"    // by whoever asks
	Recorded = "recorded" // the recorder wrote it into the file
	Inferred = "inferred" // from what the events show
	None     = "none"     // nothing tells of one, or it was switched off
)

// Bound is a cap on memory and where it comes from.
type Bound struct {
	Bytes  *uint64 `json:"bytes"` // nil: none
	Source string  `json:"source"`
	// Min and Max are what the recording shows of its own limit: it was at least
	// Min, and at most Max if something was refused.
	Min *uint64 `json:"min_bytes"`
	Max *uint64 `json:"max_bytes"`
	// Event is the failed request that shows the memory of a device.
	Event *int `json:"event"`
}

// GivenBound is a bound that somebody chose; 0 stands for none.
func GivenBound(bytes uint64) Bound {
	if bytes == 0 {
		return Bound{Source: None}
	}
	return Bound{Bytes: &bytes, Source: Given}
}

// Value is the bound as [replay.Conditions] have it; 0 is none.
func (b Bound) Value() uint64 {
	if b.Bytes == nil {
		return 0
	}
	return *b.Bytes
}

// LimitOf returns the limit that a recording was made under: as the recorder
// wrote it down, else the upper end of the range that the events leave if they
// show one at all. f may be nil.
func LimitOf(p *replay.Program, f *side.Facts) Bound {
	b := Bound{Source: None}.shownBy(p)
	if b.Max != nil {
		b.Bytes, b.Source = b.Max, Inferred
	}
	// A limit that the events contradict was not in force all the time.
	limit := recordedLimit(f, p.Trace.Device)
	if limit != nil && (b.Min == nil || *limit >= *b.Min) && (b.Max == nil || *limit <= *b.Max) {
		b.Bytes, b.Source = limit, Recorded
	}
	return b
}

func recordedLimit(f *side.Facts, device int) *uint64 {
	if f == nil {
		return nil
	}
	if d := f.DeviceFacts(device); d != nil && d.LimitKnown {
		return d.LimitBytes
	}
	if f.Device != nil && *f.Device == device {
		return f.LimitBytes
	}
	return nil
}

// shownBy adds what the events of a recording show of its limit.
func (b Bound) shownBy(p *replay.Program) Bound {
	if c := p.Check; c != nil && c.Limit != nil {
		b.Min = &c.Limit.Min
		if c.Limit.Max != 0 {
			b.Max = &c.Limit.Max
		}
	}
	return b
}

// MemoryOf returns what the device had for the allocator: its free memory and
// what was reserved, at the moment of the snapshot if the recorder wrote it
// down, else at the first failed request. f may be nil.
//
// Other processes come and go, so the device may have had less later. It did
// have what the recording reserved, and the bound is never below that.
func MemoryOf(p *replay.Program, f *side.Facts) Bound {
	peaks := timeline.New(p.Trace, timeline.Options{}).Peaks()
	for _, o := range peaks.OOMs {
		bytes := o.Event.Addr + o.Totals.Reserved
		if o.Event.Addr == 0 || bytes < o.Event.Addr { // the file does not tell, or nonsense
			continue
		}
		bytes = max(bytes, peaks.Reserved.Value)
		return Bound{Bytes: &bytes, Source: Inferred, Event: &o.Index}
	}
	if f == nil || p.Trace.Partial {
		return Bound{Source: None}
	}
	if d := f.DeviceFacts(p.Trace.Device); d != nil && d.FreeBytes != nil {
		bytes := *d.FreeBytes
		for i := range p.Trace.Segments {
			bytes += p.Trace.Segments[i].TotalSize
		}
		bytes = max(bytes, peaks.Reserved.Value)
		return Bound{Bytes: &bytes, Source: Recorded}
	}
	return Bound{Source: None}
}

// endsInOOM reports whether the recording ends with a failed request: nothing
// is allocated after it.
func endsInOOM(p *replay.Program) bool {
	for i := p.Trace.Events.Len() - 1; i >= 0; i-- {
		switch p.Trace.Events.Action.At(i) {
		case alloc.ActionOOM:
			return true
		case alloc.ActionAlloc:
			return false
		}
	}
	return false
}
