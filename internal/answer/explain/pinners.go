package explain

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// How much of the pinned segments a report holds.
const (
	maxPinned = 50
	maxStacks = 20
)

// pinners lists the segments of the request's pool with free memory that live
// blocks keep from release: who, ranked by bytes freed per byte moved.
func (e *explainer) pinners() {
	f := e.failed
	live := e.liveAt()
	for i := range f.after {
		s := &f.after[i]
		if s.Pool != f.call.Pool {
			continue
		}
		seg := Segment{Address: s.Address, Size: s.TotalSize}
		byStack := map[trace.StackID]*Block{}
		var order []trace.StackID
		for _, b := range s.Blocks {
			if b.State == alloc.Inactive {
				seg.Stuck += b.Size
				continue
			}
			seg.Live += b.Size
			seg.Count++
			id := trace.NoStack
			if l, ok := live[b.Address]; ok {
				id = l.Stack
				if l.Recorded != 0 {
					seg.Address = l.Recorded - (b.Address - s.Address)
				}
			}
			if byStack[id] == nil {
				byStack[id] = &Block{}
				order = append(order, id)
			}
			byStack[id].Bytes += b.Size
			byStack[id].Count++
		}
		if seg.Stuck == 0 || seg.Live == 0 {
			continue
		}
		slices.SortStableFunc(order, func(x, y trace.StackID) int { return cmp.Compare(byStack[y].Bytes, byStack[x].Bytes) })
		for _, id := range order[:min(len(order), maxStacks)] {
			b := byStack[id]
			b.Frames = timeline.Frames(e.trace, id)
			b.Site, _ = timeline.SiteOf(e.trace, id)
			seg.Blocks = append(seg.Blocks, *b)
		}
		e.report.Pinners = append(e.report.Pinners, seg)
	}
	slices.SortStableFunc(e.report.Pinners, func(x, y Segment) int {
		return cmp.Compare(float64(y.Stuck)/float64(y.Live), float64(x.Stuck)/float64(x.Live))
	})
	e.report.Pinners = e.report.Pinners[:min(len(e.report.Pinners), maxPinned)]
}

// liveBlock is a live tensor, and where the recording had it.
type liveBlock struct {
	replay.Live
	Recorded uint64 // 0 if that is not known
}

// liveAt finds the live tensors at the failure by address.
func (e *explainer) liveAt() map[uint64]liveBlock {
	if e.failed.held == nil {
		return nil
	}
	out := map[uint64]liveBlock{}
	older := e.older()
	for _, l := range e.failed.held.Live() {
		b := liveBlock{Live: l}
		if l.Event >= 0 {
			b.Recorded = e.trace.Events.Addr.At(l.Event)
		} else {
			b.Recorded = older[l.Address]
		}
		out[l.Address] = b
	}
	return out
}

// older finds where the recording had the blocks that are older than its first
// event: replays have them elsewhere, but in the same order.
func (e *explainer) older() map[uint64]uint64 {
	if len(e.program.Start.Segments) == 0 {
		return nil
	}
	m, err := e.program.Hold(e.ctx, e.conditions(0), 0)
	if err != nil {
		return nil
	}
	live := m.Live()
	out := map[uint64]uint64{}
	for i := range e.program.Start.Segments {
		for _, b := range e.program.Start.Segments[i].Blocks {
			if len(live) == 0 {
				return nil // not all of them are there: nothing can be told
			}
			out[live[0].Address] = b.Address
			live = live[1:]
		}
	}
	return out
}
