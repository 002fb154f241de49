package diff

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// Rank is the summary of one device among several.
type Rank struct {
	File   string `json:"file"`
	Device *int   `json:"device"` // nil for host memory
	Name   string `json:"name"`   // File, with the device if the file has several
	// Contradictions are what the file says that cannot be true together.
	Contradictions []string `json:"contradictions"`
	Events         int      `json:"events"`
	Calls          int      `json:"calls"`
	OOMs           int      `json:"oom_events"`
	Replay         *Replay  `json:"replay"`

	PeakAllocated *uint64 `json:"peak_allocated_bytes"`
	PeakRequested *uint64 `json:"peak_requested_bytes"`
	PeakReserved  uint64  `json:"peak_reserved_bytes"`
	// Fragmentation is 1 - peak allocated / peak reserved, and FragmentationBytes
	// their difference; by requested sizes, of the peak of requested.
	Fragmentation      *float64 `json:"fragmentation"`
	FragmentationBytes *uint64  `json:"fragmentation_bytes"`
	// Cached is what was reserved where reserved memory was highest, and in no
	// tensor; of the reserved memory it is the fraction ReservedUnallocated. By
	// requested sizes it is what was not requested.
	Cached              *uint64  `json:"cached_at_peak_bytes"`
	ReservedUnallocated *float64 `json:"reserved_unallocated_at_peak"`

	// Partial reports whether the file ends within its events, or that the
	// memory before them is not known: its numbers are no peaks of the run, and
	// it is not called odd.
	Partial bool `json:"partial"`

	// Parts is the event at which the rank leaves the majority; nil if it does
	// not.
	Parts *int `json:"diverges_at_event"`

	calls  *sequence
	atPeak timeline.Totals // where reserved memory was highest
	midrun bool
	notes  []string
}

// Rank sums up a trace for the comparison with others. The trace is not kept.
// Without events the memory at the end stands for its peaks.
func (x *Table) Rank(ctx context.Context, s Source, name string) (*Rank, error) {
	h, err := follow(ctx, s.Run)
	if err != nil {
		return nil, err
	}
	t := h.trace
	r := &Rank{
		File: s.File, Name: name, Contradictions: append([]string{}, s.Contradictions...), Events: t.Events.Len(), OOMs: len(h.peaks.OOMs), Replay: h.replay,
		Partial: t.Partial || h.line.AtLeast,
		calls:   x.sequence(t), midrun: h.line.Start.Kind != start.Recorded, notes: h.notes,
	}
	if t.Partial {
		r.notes = append(r.notes, "the file ends within its events: it is not called odd")
	}
	r.Calls = r.calls.length
	if !t.Host {
		device := t.Device // a pointer into the trace would keep it
		r.Device = &device
	}
	if r.Events == 0 {
		end := h.line.LiveAtEnd().Totals
		r.atPeak, r.PeakReserved, r.PeakAllocated = end, end.Reserved, &end.Allocated
		if timeline.NewState(t).RequestedKnown {
			r.PeakRequested = &end.Requested
		}
		r.notes = append(r.notes, "there are no events: the final state is taken for the peaks")
		return r, ctx.Err()
	}
	end := timeline.NewState(t)
	r.atPeak, r.PeakReserved = h.peaks.Served.Totals, *h.atLeast(h.peaks.Reserved.Value, end.Reserved)
	r.PeakRequested = h.atLeast(h.peaks.Requested.Value, end.Requested)
	if h.line.Exact {
		r.PeakAllocated = h.atLeast(h.peaks.Allocated.Value, end.Allocated)
	}
	return r, ctx.Err()
}

// use chooses block sizes or requested sizes for the fragmentation.
func (r *Rank) use(sizes string) {
	used, peak := r.atPeak.Allocated, r.PeakAllocated
	if sizes == RequestedSizes {
		used, peak = r.atPeak.Requested, r.PeakRequested
	}
	if peak == nil {
		return
	}
	if !r.Partial {
		unallocated := r.PeakReserved - min(r.PeakReserved, *peak)
		r.Fragmentation, r.FragmentationBytes = timeline.PeakFragmentation(r.PeakReserved, *peak), &unallocated
	}
	if r.calls == nil {
		return // of a rank that is in no table only numbers are known
	}
	cached := r.atPeak.Reserved - min(r.atPeak.Reserved, used)
	r.Cached, r.ReservedUnallocated = &cached, share(r.atPeak.Reserved, used)
}
