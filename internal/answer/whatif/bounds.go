package whatif

import (
	"errors"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
)

// Where a Bound comes from.
const (
	Given    = "given"    // by whoever asks
	Recorded = "recorded" // the recorder wrote it into the file
	Inferred = "inferred" // from what the events show
	None     = "none"     // none is known, or it was switched off
)

// Bound is a cap on memory and where it comes from.
type Bound struct {
	Bytes  *uint64 `json:"bytes"` // nil: none
	Source string  `json:"source"`
}

// Value returns the bound as [replay.Conditions] have it; 0 is none.
func (b Bound) Value() uint64 {
	if b.Bytes == nil {
		return 0
	}
	return *b.Bytes
}

func given(n uint64) Bound {
	if n == 0 {
		return Bound{Source: None}
	}
	return Bound{Bytes: &n, Source: Given}
}

// Limit is a cap on reserved memory.
type Limit struct {
	Bound
	// Min and Max are what the recording shows of its own limit: it was at least
	// Min, and at most Max if something was refused.
	Min *uint64 `json:"min_bytes"`
	Max *uint64 `json:"max_bytes"`
}

// GivenLimit returns a limit that somebody chose; 0 stands for none.
func GivenLimit(r *run.Checked, n uint64) Limit {
	l := shownLimit(r.Program.Check)
	l.Bound = given(n)
	return l
}

// Memory is what a device has for the allocator.
type Memory struct {
	Bound
	Event *int `json:"event"` // the failed request that shows it
}

// GivenMemory returns what somebody chose; 0 stands for memory without end.
func GivenMemory(n uint64) Memory { return Memory{Bound: given(n)} }

// ParseBound reads a bound as people write it: a size, or none, which is 0.
func ParseBound(text string) (uint64, error) {
	if text == "none" {
		return 0, nil
	}
	n, err := units.ParseMemory(text)
	if err == nil && n == 0 {
		err = errors.New("it is 0; write none for no limit")
	}
	return n, err
}

// Bounds returns the bounds that were given, else those that the recording
// shows: nil stands for one that was not given, 0 for none.
func Bounds(r *run.Checked, limit, memory *uint64) (Limit, Memory) {
	l, m := Limit{}, Memory{}
	if limit != nil {
		l = GivenLimit(r, *limit)
	} else {
		l = LimitOf(r)
	}
	if memory != nil {
		m = GivenMemory(*memory)
	} else {
		m = MemoryOf(r)
	}
	return l, m
}

// RecordedBounds returns the bounds that a recording was made under, for a run
// whose calls nobody asked for. check is nil if it was not replayed.
func RecordedBounds(r *run.Run, check *replay.Result, peaks *timeline.Peaks) (Limit, Memory) {
	return limitOf(r, check), memoryOf(r, peaks)
}

// LimitOf returns the limit that a recording was made under: as the recorder
// wrote it down, else the upper end of the range that the events leave if they
// show one at all.
func LimitOf(r *run.Checked) Limit { return limitOf(r.Run, r.Program.Check) }

func limitOf(r *run.Run, check *replay.Result) Limit {
	l := inferredLimit(check)
	// A limit that the events contradict was not in force all the time.
	written := RecordedLimit(r.Facts, r.Trace.Device)
	if written != nil && (l.Min == nil || *written >= *l.Min) && (l.Max == nil || *written <= *l.Max) {
		l.Bound = Bound{written, Recorded}
	}
	return l
}

// RecordedLimit returns the limit of a device that a recorder wrote down, nil if
// there is none or nobody did. f may be nil.
func RecordedLimit(f *recorder.Facts, device int) *uint64 {
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

// inferredLimit returns the limit that the events alone show.
func inferredLimit(check *replay.Result) Limit {
	l := shownLimit(check)
	if l.Max != nil {
		l.Bound = Bound{l.Max, Inferred}
	}
	return l
}

// shownLimit has no limit yet, but what the events show of it.
func shownLimit(c *replay.Result) Limit {
	l := Limit{Bound: Bound{Source: None}}
	if c != nil && c.Limit != nil {
		l.Min = &c.Limit.Min
		if c.Limit.Max != 0 {
			l.Max = &c.Limit.Max
		}
	}
	return l
}

// MemoryOf returns what the device had for the allocator: its free memory and
// what was reserved, at the moment of the snapshot if the recorder wrote it
// down, else at the first failed request.
//
// Other processes come and go, so the device may have had less later. It did
// have what the recording reserved, and the bound is never below that.
func MemoryOf(r *run.Checked) Memory { return memoryOf(r.Run, r.Peaks) }

func memoryOf(r *run.Run, peaks *timeline.Peaks) Memory {
	if m := inferredMemory(peaks); m.Source != None || r.Facts == nil || r.Trace.Partial {
		return m
	}
	if d := r.Facts.DeviceFacts(r.Trace.Device); d != nil && d.FreeBytes != nil {
		bytes := *d.FreeBytes
		for i := range r.Trace.Segments {
			bytes += r.Trace.Segments[i].TotalSize
		}
		bytes = max(bytes, peaks.Reserved.Value)
		return Memory{Bound: Bound{&bytes, Recorded}}
	}
	return GivenMemory(0)
}

// inferredMemory returns what the events alone show.
func inferredMemory(peaks *timeline.Peaks) Memory {
	for _, o := range peaks.OOMs {
		bytes := o.Event.Addr + o.Totals.Reserved
		if o.Event.Addr == 0 || bytes < o.Event.Addr { // the file does not say, or nonsense
			continue
		}
		bytes = max(bytes, peaks.Reserved.Value)
		return Memory{Bound{&bytes, Inferred}, &o.Index}
	}
	return GivenMemory(0)
}

// EndsInOOM reports whether a trace ends with a failed request: nothing is
// allocated after it.
func EndsInOOM(t *trace.Trace) bool {
	for i := t.Events.Len() - 1; i >= 0; i-- {
		switch t.Events.Action.At(i) {
		case alloc.ActionOOM:
			return true
		case alloc.ActionAlloc:
			return false
		}
	}
	return false
}
