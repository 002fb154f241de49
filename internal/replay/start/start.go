package start

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/ordered"
	"github.com/ashlar-mem/ashlar/trace"
)

// Where the state at the first event of a trace comes from.
const (
	Recorded = "recorded" // recording began before the first allocation
	Rebuilt  = "rebuilt"  // recovered by undoing the events from the final state
	Unknown  = "unknown"  // the file ends within the events and begins mid-run
)

// State is the state of the allocator at the first event of a trace.
type State struct {
	Kind     string
	Segments []alloc.Segment // empty if recorded; blocks of unknown size have size 0
	Notes    []string        // contradictions met on the way, and what the start looks like
}

// Reserved returns what was reserved at the first event.
func (s *State) Reserved() uint64 {
	var bytes uint64
	for i := range s.Segments {
		bytes += s.Segments[i].TotalSize
	}
	return bytes
}

// Find recovers the state at the beginning of a trace from the state at its
// end by undoing the events backwards (spec 16). Neighbouring free blocks are
// always merged, so what is not live at the beginning is free.
func Find(t *trace.Trace) *State {
	if t.Partial {
		if !beginsEmpty(t) {
			return &State{Kind: Unknown, Notes: []string{
				"the file ends within the events and begins mid-run: the state at its beginning cannot be rebuilt, so it cannot be replayed",
			}}
		}
		return &State{Kind: Recorded, Notes: []string{
			"the file ends within the events: its segments are those of a later moment and are not compared",
		}}
	}
	u := undo{trace: t, rules: alloc.RulesOf(t.Settings.Parsed, t.Writer.Assumed()), live: map[uint64]alloc.Block{}, plainAt: make(map[uint64]int32, len(t.Segments)), finals: map[uint64]*ordered.Map[bool]{}}
	u.plain = make([]alloc.Segment, 0, len(t.Segments))
	for i := range t.Segments {
		u.final(&t.Segments[i])
	}
	for i := t.Events.Len() - 1; i >= 0; i-- {
		if u.freed(i) {
			i-- // with its request
			continue
		}
		u.event(i)
	}
	s := &State{Kind: Recorded, Notes: u.notes}
	if len(u.plainAt) == 0 && u.mapped.Len() == 0 && len(u.live) == 0 {
		return s
	}
	s.Kind = Rebuilt
	s.Segments = u.segments()
	findSizes(t, s.Segments)
	if t.Events.Len() == 0 {
		s.Notes = append(s.Notes, "the file has no events: there is nothing to replay, only a state to rebuild")
		return s
	}
	if note := overflowed(t, u.live); note != "" {
		s.Notes = append(s.Notes, note)
	}
	return s
}

// beginsEmpty reports whether the first allocation lies in a segment obtained
// after the first event, as it does if recording was on from the beginning.
func beginsEmpty(t *trace.Trace) bool {
	var got []trace.Event
	for i := range t.Events.Len() {
		switch e := t.Events.At(i); e.Action {
		case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
			got = append(got, e)
		case alloc.ActionAlloc:
			return slices.ContainsFunc(got, func(s trace.Event) bool { return e.Addr >= s.Addr && e.Addr-s.Addr < s.Size })
		case alloc.ActionFreeRequested, alloc.ActionFreeCompleted, alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
			return false
		}
	}
	return true
}

// undo goes backwards through a trace.
type undo struct {
	trace   *trace.Trace
	rules   alloc.Rules
	live    map[uint64]alloc.Block        // active blocks by address
	plain   []alloc.Segment               // all that were seen; those in plainAt are there
	plainAt map[uint64]int32              // where in plain, by address: a map of segments takes twice the memory
	spare   []int32                       // of plain
	mapped  ordered.Map[alloc.Segment]    // mapped runs of expandable segments
	finals  map[uint64]*ordered.Map[bool] // by stream: those at the end, and whether they are of the large pool
	notes   []string
}

func (u *undo) final(s *trace.Segment) {
	seg := s.ToEngine(u.trace.Device)
	for _, b := range seg.Blocks {
		if b.State != alloc.Inactive {
			u.live[b.Address] = b
		}
	}
	seg.Blocks = nil
	if seg.Expandable {
		u.addMapped(seg)
		if u.finals[s.Stream] == nil {
			u.finals[s.Stream] = new(ordered.Map[bool])
		}
		u.finals[s.Stream].Set(s.Address, s.Type == "large")
	} else {
		u.addPlain(seg)
	}
}

func (u *undo) addPlain(seg alloc.Segment) {
	if n := len(u.spare); n > 0 {
		u.plainAt[seg.Address] = u.spare[n-1]
		u.plain[u.spare[n-1]] = seg
		u.spare = u.spare[:n-1]
		return
	}
	u.plainAt[seg.Address] = int32(len(u.plain))
	u.plain = append(u.plain, seg)
}

// freed undoes a free whose request is the event before it, as most are.
func (u *undo) freed(i int) bool {
	e := &u.trace.Events
	if i == 0 || e.Action.At(i) != alloc.ActionFreeCompleted || e.Action.At(i-1) != alloc.ActionFreeRequested {
		return false
	}
	addr, live := e.Addr.At(i), len(u.live)
	if e.Addr.At(i-1) != addr {
		return false
	}
	u.live[addr] = alloc.Block{Address: addr, RequestedSize: e.Size.At(i), State: alloc.ActiveAllocated}
	if len(u.live) == live {
		u.contradiction(i, "frees %#x, which is live afterwards", addr)
	}
	return true
}

func (u *undo) event(i int) {
	if u.trace.Events.Action.At(i) == alloc.ActionAlloc {
		addr, live := u.trace.Events.Addr.At(i), len(u.live)
		if delete(u.live, addr); len(u.live) == live {
			u.contradiction(i, "allocates %#x, which is not live afterwards", addr)
		}
		return
	}
	e := u.trace.Events.At(i)
	switch e.Action {
	case alloc.ActionFreeCompleted:
		if _, ok := u.live[e.Addr]; ok {
			u.contradiction(i, "frees %#x, which is live afterwards", e.Addr)
		}
		u.live[e.Addr] = alloc.Block{Address: e.Addr, RequestedSize: e.Size, State: alloc.ActivePendingFree}
	case alloc.ActionFreeRequested:
		b, ok := u.live[e.Addr]
		if !ok {
			u.contradiction(i, "frees %#x, which is not live afterwards", e.Addr)
			b = alloc.Block{Address: e.Addr, RequestedSize: e.Size}
		}
		b.State = alloc.ActiveAllocated
		u.live[e.Addr] = b
	case alloc.ActionSegmentAlloc:
		if at, ok := u.plainAt[e.Addr]; ok {
			u.spare = append(u.spare, at)
			delete(u.plainAt, e.Addr)
		} else {
			u.contradiction(i, "obtains a segment at %#x that is not there afterwards", e.Addr)
		}
	case alloc.ActionSegmentFree:
		u.addPlain(alloc.Segment{
			Device: u.trace.Device, Address: e.Addr, TotalSize: e.Size, Stream: e.Stream, Pool: u.trace.Events.PoolID(e.Pool),
			Large: u.rules.LargeSegment(e.Size),
		})
	case alloc.ActionSegmentMap:
		u.cutMapped(e.Addr, e.Size)
	case alloc.ActionSegmentUnmap:
		u.addMapped(alloc.Segment{
			Device: u.trace.Device, Address: e.Addr, TotalSize: e.Size, Stream: e.Stream, Pool: u.trace.Events.PoolID(e.Pool),
			Large: u.largeMapping(e.Addr, e.Size, e.Stream), Expandable: true,
		})
	}
}

// largeMapping reports whether a range of an expandable segment is in the large
// pool: not if its size is no multiple of that pool's granule; otherwise it is in
// the pool of the nearest run of its stream in the final state.
func (u *undo) largeMapping(addr, size, stream uint64) bool {
	if size%u.rules.Granule(true) != 0 {
		return false
	}
	const far = 1 << 38
	finals := u.finals[stream]
	if finals == nil {
		return true
	}
	low, below := finals.Before(addr)
	high, above := finals.After(addr)
	switch {
	case below != nil && addr-low < far && (above == nil || addr-low <= high-addr):
		return *below
	case above != nil && high-addr < far:
		return *above
	}
	return true
}

// kinds corrects the pools of mapped runs by what lies in them: the small pool
// has no block for a request of the large one, nor the other way round. A
// run that touches one of the same stream is of the same pool.
func (u *undo) kinds() (runs []alloc.Segment) {
	for _, r := range u.mapped.All() {
		runs = append(runs, *r)
	}
	sure := make([]bool, len(runs))
	for addr, b := range u.live {
		i, found := slices.BinarySearchFunc(runs, addr, func(s alloc.Segment, a uint64) int { return cmp.Compare(s.Address, a) })
		if !found {
			i--
		}
		if i >= 0 && addr-runs[i].Address < runs[i].TotalSize && b.RequestedSize > 0 {
			runs[i].Large, sure[i] = u.rules.Large(b.RequestedSize), true
		}
	}
	spread := func(from, to int) {
		x, y := &runs[min(from, to)], &runs[max(from, to)]
		if sure[from] && !sure[to] && x.Address+x.TotalSize == y.Address && x.Stream == y.Stream {
			runs[to].Large, sure[to] = runs[from].Large, true
		}
	}
	for i := 1; i < len(runs); i++ {
		spread(i-1, i)
	}
	for i := len(runs) - 1; i > 0; i-- {
		spread(i, i-1)
	}
	return runs
}

// addMapped adds a mapped run, in place of what a file that contradicts itself has there already.
func (u *undo) addMapped(run alloc.Segment) {
	if run.TotalSize == 0 {
		return
	}
	u.cutMapped(run.Address, run.TotalSize)
	u.mapped.Set(run.Address, run)
}

// cutMapped removes a range from the mapped runs.
func (u *undo) cutMapped(addr, size uint64) {
	if size == 0 {
		return
	}
	var cut []alloc.Segment
	if at, r := u.mapped.Before(addr); r != nil && at < addr && addr-at < r.TotalSize {
		cut = append(cut, *r)
	}
	for at, r := range u.mapped.From(addr) {
		if at-addr >= size {
			break
		}
		cut = append(cut, *r)
	}
	for _, r := range cut {
		u.mapped.Delete(r.Address)
		end := r.Address + r.TotalSize
		if r.Address < addr {
			front := r
			front.TotalSize = addr - r.Address
			u.mapped.Set(front.Address, front)
		}
		if addr+size < end {
			r.Address, r.TotalSize = addr+size, end-addr-size
			u.mapped.Set(r.Address, r)
		}
	}
}

const maxNotes = 5

func (u *undo) contradiction(i int, format string, args ...any) {
	if len(u.notes) < maxNotes {
		u.notes = append(u.notes, fmt.Sprintf("the file contradicts itself: event %d ", i)+fmt.Sprintf(format, args...))
	}
}

// segments lists the state at the beginning.
func (u *undo) segments() []alloc.Segment {
	out := u.plain[:0]
	for i, s := range u.plain {
		if at, ok := u.plainAt[s.Address]; ok && int(at) == i {
			out = append(out, s)
		}
	}
	u.plain, u.plainAt = nil, nil
	// Runs that touch were one.
	for _, r := range u.kinds() {
		if n := len(out); n > 0 && out[n-1].Expandable && out[n-1].Address+out[n-1].TotalSize == r.Address &&
			out[n-1].Stream == r.Stream && out[n-1].Pool == r.Pool && out[n-1].Large == r.Large {
			out[n-1].TotalSize += r.TotalSize
			continue
		}
		out = append(out, r)
	}
	slices.SortFunc(out, byAddress)
	for _, addr := range slices.Sorted(maps.Keys(u.live)) {
		i, found := slices.BinarySearchFunc(out, addr, func(s alloc.Segment, a uint64) int { return cmp.Compare(s.Address, a) })
		if !found {
			i--
		}
		if i < 0 || addr-out[i].Address >= out[i].TotalSize {
			u.notes = append(u.notes, fmt.Sprintf("the file contradicts itself: a block at %#x is live at the beginning in no segment", addr))
			continue
		}
		out[i].Blocks = append(out[i].Blocks, u.live[addr])
	}
	return out
}

func byAddress(x, y alloc.Segment) int { return cmp.Compare(x.Address, y.Address) }

// overflowed looks for signs that recording was on before the first event: a
// ring that lost its oldest events (spec 16).
func overflowed(t *trace.Trace, live map[uint64]alloc.Block) string {
	for i := range t.Segments {
		for _, b := range t.Segments[i].Blocks {
			if old, ok := live[b.Address]; ok && old.Size == b.Size && b.Stack > trace.EmptyStack && b.State != alloc.Inactive {
				return "the ring of events overflowed: blocks older than the first event carry stacks, so recording was on before it"
			}
		}
	}
	if n := t.Events.Len(); n > 0 {
		first := t.Events.Time.At(0)
		for _, a := range t.Annotations {
			if first != trace.NoTime && a.Time != trace.NoTime && a.Time < first {
				return "the ring of events overflowed: annotations are older than the first event"
			}
		}
	}
	return "the trace starts mid-run, or the ring of events overflowed: the file does not tell which"
}
