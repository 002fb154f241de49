package diff

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Side is the memory of one device at one moment.
type Side struct {
	File         string  `json:"file"`
	Device       *int    `json:"device"` // nil for host memory
	DeviceReason *string `json:"device_reason"`
	// Contradictions are what the file says that cannot be true together.
	Contradictions []string `json:"contradictions"`
	Settings       *string  `json:"settings"`
	Events         int      `json:"events"`
	OOMs           int      `json:"oom_events"`
	Replay         *Replay  `json:"replay"`

	At Moment `json:"at"`

	PeakAllocated *uint64 `json:"peak_allocated_bytes"`
	PeakReserved  *uint64 `json:"peak_reserved_bytes"`
	PeakRequested *uint64 `json:"peak_requested_bytes"`

	// At the moment.
	Reserved  uint64  `json:"reserved_bytes"`
	Allocated *uint64 `json:"allocated_bytes"`
	Active    *uint64 `json:"active_bytes"`
	Requested *uint64 `json:"requested_bytes"`
	Blocks    int     `json:"active_blocks"`

	Fragmentation Fragmentation `json:"fragmentation"`

	holders []timeline.LiveHolder // with stacks of the table
	source  int                   // sides of one trace have the same
	frames  []trace.FrameID       // all of the file, in the table
	notes   []string
}

// Moment is where a side is looked at.
type Moment struct {
	Asked string `json:"asked"` // peak, start, end, step:N or a number
	timeline.Moment
}

// Fragmentation holds fractions from 0 to 1, the first of the run, the others at
// the moment of a side; nil is not known. How free memory is scattered is known
// only at the end.
type Fragmentation struct {
	OfPeaks             *float64 `json:"reserved_unallocated_of_peaks"` // 1 - peak allocated / peak reserved
	ReservedUnallocated *float64 `json:"reserved_unallocated"`
	InactiveSplit       *float64 `json:"inactive_split"`
	External            *float64 `json:"external"`
}

// Source names the trace that sides are taken of.
type Source struct {
	File           string
	Run            *run.Run
	Reason         string   // why this device, if there was a choice
	Contradictions []string // of the file with itself
}

// Sides looks at a trace at some moments. The trace is not kept.
func (x *Table) Sides(ctx context.Context, s Source, at []At) ([]*Side, error) {
	h, err := follow(ctx, s.Run)
	if err != nil {
		return nil, err
	}
	lives := make([]*timeline.Live, len(at))
	var events, places []int
	for i, a := range at {
		e, err := a.find(h)
		if err != nil {
			return nil, fmt.Errorf("%s: moment %s: %w", s.File, a, err)
		}
		if a == End {
			lives[i] = h.line.LiveAtEnd()
			continue
		}
		events, places = append(events, e), append(places, i)
	}
	for i, live := range h.line.LiveAt(events...) {
		lives[places[i]] = live
	}
	m := x.importer(h.trace)
	frames := m.allFrames()
	x.sources++
	out := make([]*Side, len(at))
	for i, live := range lives {
		side := newSide(s, h, at[i], live)
		side.frames, side.source = frames, x.sources
		for _, holder := range live.Holders {
			holder.Stack = m.stack(holder.Stack)
			side.holders = append(side.holders, holder)
		}
		out[i] = side
	}
	return out, ctx.Err()
}

func newSide(s Source, h *history, at At, live *timeline.Live) *Side {
	t := h.trace
	side := &Side{
		File: s.File, DeviceReason: text(s.Reason), Contradictions: append([]string{}, s.Contradictions...), Events: t.Events.Len(), OOMs: len(h.peaks.OOMs), Replay: h.replay,
		At: h.moment(live.Event), Reserved: live.Totals.Reserved, Blocks: live.Totals.Blocks,
		notes: h.notes,
	}
	side.At.Asked = at.String()
	if !t.Host {
		side.Device = &t.Device
	}
	if t.Settings.Known {
		side.Settings = &t.Settings.Conf
	}
	if t.Events.Len() > 0 {
		s := timeline.NewState(t)
		side.PeakReserved, side.PeakRequested = h.atLeast(h.peaks.Reserved.Value, s.Reserved), h.atLeast(h.peaks.Requested.Value, s.Requested)
		if h.line.Exact {
			side.PeakAllocated = h.atLeast(h.peaks.Allocated.Value, s.Allocated)
			if !t.Partial {
				side.Fragmentation.OfPeaks = timeline.PeakFragmentation(*side.PeakReserved, *side.PeakAllocated)
			}
		}
	}
	if live.Sized {
		side.Allocated, side.Active = &live.Totals.Allocated, &live.Totals.Active
		side.Fragmentation.ReservedUnallocated = share(live.Totals.Reserved, live.Totals.Allocated)
	}
	side.Requested = &live.Totals.Requested
	if at != End {
		return side
	}
	state := timeline.NewState(t)
	if !state.RequestedKnown {
		side.Requested = nil
	}
	if state.Segments > 0 {
		f := state.Fragmentation()
		side.Fragmentation.InactiveSplit, side.Fragmentation.External = known(f.InactiveSplit), known(f.External)
		if t.Partial {
			side.notes = append(side.notes[:len(side.notes):len(side.notes)],
				"the file ends within its events: the end is the state at the dump, after the last of them")
			side.At.Event, side.At.Time, side.At.Since = nil, nil, nil
		}
	}
	return side
}

// moment describes the place of an event.
func (h *history) moment(event int) Moment {
	m := Moment{Moment: h.moments.Event(event)}
	if m.Step != nil && *m.Step > len(h.program.Steps) {
		m.Step = nil // after the last one
	}
	return m
}

// share returns the part of reserved memory that is in no tensor.
func share(reserved, used uint64) *float64 {
	return known(timeline.Fraction(reserved-min(reserved, used), reserved))
}

func known(f float64) *float64 {
	if f < 0 {
		return nil
	}
	return &f
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
