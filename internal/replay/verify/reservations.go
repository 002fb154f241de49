package verify

import (
	"cmp"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// The addresses that expandable segments reserve are in no file, only what is
// mapped in them, and how many there are decides where a segment ends and
// another one begins. It follows from the device's memory (spec 6.1), which is
// in no file either. Both are recovered from the events:
//
//   - A segment belongs to one stream and one kind of pool.
//   - Memory is mapped at the front of an unmapped range. So a mapping beyond the
//     highest mapped byte of a segment is the beginning of another segment.
//   - Segments that are there at the same time do not overlap. So no segment is
//     longer than from one to the next.
//   - The device has at least what was reserved and free at any one time, and so
//     a segment at least nine eighths of it.

// reservations are what a trace shows of its expandable segments.
type reservations struct {
	trace *trace.Trace
	start *start.State
	rules alloc.Rules
	// memory is the device's, as large as the addresses allow.
	memory uint64
	// tight is the kind of the shortest segment, which memory comes from.
	tight bool
	// least is what the device has at least.
	least uint64
	// others are other sizes that the addresses allow.
	others []uint64
	// first are the segments that are there before the first event.
	first []*reservation

	live  []*reservation    // by address
	began map[uint64]uint64 // first run before the first event -> base
}

// reservation is an expandable segment.
type reservation struct {
	base   uint64
	home   reservedFor
	mapped []addresses // by address, none touches the next
	first  uint64      // its first run before the first event, if there was one: it may begin lower
}

// addresses are those from low up to high.
type addresses struct{ low, high uint64 }

type reservedFor struct {
	stream uint64
	large  bool
	pool   alloc.PoolID
}

// unlimited is a device whose segments have room for everything.
const unlimited = 256 << 30

func findReservations(t *trace.Trace, start *start.State, s settings.Settings, m *deviceMemory) *reservations {
	f := &reservations{trace: t, start: start, rules: alloc.RulesOf(s, t.Writer.Assumed()), least: m.least(), memory: math.MaxUint64, began: map[uint64]uint64{}}
	// The length of segments shows where others begin.
	const walks = 3
	for range walks {
		memory := f.memory
		f.walk()
		if f.memory == memory {
			break
		}
	}
	if f.memory == math.MaxUint64 {
		f.memory = max(unlimited, 2*f.least)
		return f
	}
	f.others = f.possible()
	if len(m.ooms) > 0 && f.packed(f.least) {
		f.others = slices.Concat([]uint64{f.memory}, f.others)
		f.memory = f.least
	}
	return f
}

// packed reports whether segments of a device with so much memory would lie
// where they do: drivers put one behind the other, at multiples of 32 MiB.
func (f *reservations) packed(memory uint64) bool {
	const unit = 32 << 20
	return memory <= f.memory && f.length(f.tight, f.memory)-f.length(f.tight, memory) < unit
}

// possible returns the sizes of the device below memory under which segments
// would be packed alike. They differ in how many addresses are left at the end
// of one.
func (f *reservations) possible() []uint64 {
	const step = alloc.SmallSegment / 9 * 8
	var out []uint64
	for m := f.memory; m > f.least+step && f.packed(m-step); m -= step {
		out = append(out, m-step)
	}
	return out
}

// spans returns the addresses of the segments that are there before the first
// event, on a device with so much memory.
func (f *reservations) spans(memory uint64) []alloc.Span {
	out := make([]alloc.Span, len(f.first))
	for i, r := range f.first {
		end := r.base + f.length(r.home.large, memory)
		if i+1 < len(f.first) {
			end = min(end, f.first[i+1].base)
		}
		g := f.rules.Granule(r.home.large)
		out[i] = alloc.Span{Addr: r.base, Size: (end - r.base) / g * g}
	}
	return out
}

// length returns how many addresses a segment has on a device with so much
// memory.
func (f *reservations) length(large bool, memory uint64) uint64 {
	if memory == math.MaxUint64 {
		return math.MaxUint64
	}
	return alloc.ReservationSize(memory, f.rules.Granule(large))
}

// walk goes through the trace with what is known so far and notes how long
// segments can be.
func (f *reservations) walk() {
	f.live = nil
	for i := range f.start.Segments {
		if s := &f.start.Segments[i]; s.Expandable {
			f.addInitial(s)
		}
	}
	f.first = slices.Clone(f.live)
	for i := range f.first {
		f.bound(i)
	}
	e := &f.trace.Events
	for i := range e.Len() {
		switch e.Action.At(i) {
		case alloc.ActionSegmentMap:
			f.mapping(e.Addr.At(i), e.Size.At(i), e.Streams[e.Stream.At(i)])
		case alloc.ActionSegmentUnmap:
			f.unmapping(e.Addr.At(i), e.Size.At(i))
		}
	}
}

// addInitial adds what is mapped before the first event.
func (f *reservations) addInitial(s *alloc.Segment) {
	home := reservedFor{s.Stream, s.Large, s.Pool}
	run := addresses{s.Address, s.Address + s.TotalSize}
	if n := len(f.live); n > 0 {
		r := f.live[n-1]
		if r.home == home && run.high-r.base <= f.length(s.Large, f.memory) && (run.low-r.base)%f.rules.Granule(s.Large) == 0 {
			r.mapped = append(r.mapped, run)
			return
		}
	}
	r := &reservation{base: s.Address, home: home, mapped: []addresses{run}, first: s.Address}
	// Where it begins may have shown in the walk before.
	if base, ok := f.began[s.Address]; ok {
		r.base = base
	}
	f.live = append(f.live, r)
}

// mapping adds what an event maps, to the segment that it lies in or as the
// beginning of a new one.
func (f *reservations) mapping(addr, size, stream uint64) {
	home := reservedFor{stream: stream, large: f.rules.LargeSegment(size) || f.rules.Granule(true) == f.rules.Granule(false)}
	run := addresses{addr, addr + size}
	i := f.find(addr)
	if i >= 0 {
		r := f.live[i]
		if f.alike(r, home) && addr <= r.mapped[len(r.mapped)-1].high && run.high-r.base <= f.length(r.home.large, f.memory) {
			r.add(run)
			return
		}
	}
	i++
	if i < len(f.live) {
		// A new segment would end where the next begins, or before.
		r := f.live[i]
		gap := r.base - addr
		length := f.length(home.large, f.least)
		if f.memory != math.MaxUint64 {
			length = max(length, f.length(home.large, f.memory))
		}
		if r.first != 0 && f.alike(r, home) && gap < length && gap%f.rules.Granule(r.home.large) == 0 {
			r.base = addr
			f.began[r.first] = addr
			r.add(run)
			f.bound(i - 1)
			return
		}
	}
	f.live = slices.Insert(f.live, i, &reservation{base: addr, home: home, mapped: []addresses{run}})
	f.bound(i - 1)
	f.bound(i)
}

// unmapping removes what an event unmaps. A segment of which nothing is mapped
// any more is gone.
func (f *reservations) unmapping(addr, size uint64) {
	i := f.find(addr)
	if i < 0 {
		return
	}
	r := f.live[i]
	r.remove(addresses{addr, addr + size})
	if len(r.mapped) == 0 {
		f.live = slices.Delete(f.live, i, i+1)
	}
}

// find returns the last segment that begins at or below an address, or -1.
func (f *reservations) find(addr uint64) int {
	i, found := slices.BinarySearchFunc(f.live, addr, func(r *reservation, a uint64) int { return cmp.Compare(r.base, a) })
	if !found {
		i--
	}
	return i
}

// alike reports whether memory mapped for a stream and kind of pool can be in a
// segment. The pool itself is in no event.
func (f *reservations) alike(r *reservation, home reservedFor) bool {
	return r.home.stream == home.stream && (r.home.large == home.large || f.rules.Granule(true) == f.rules.Granule(false))
}

// bound notes that a segment ends where the next one begins, or before.
func (f *reservations) bound(i int) {
	if i < 0 || i+1 >= len(f.live) {
		return
	}
	r, next := f.live[i], f.live[i+1]
	gap := next.base - r.base
	if next.first != 0 && r.first == 0 && f.alike(next, r.home) {
		return // perhaps one segment, see mapping
	}
	if gap < f.length(r.home.large, f.least) {
		return // the first of them begins lower than it shows
	}
	g := f.rules.Granule(r.home.large)
	gap = gap / g * g
	if memory := gap - (gap+8)/9; memory < f.memory {
		f.memory, f.tight = memory, r.home.large
	}
}

// add maps a range.
func (r *reservation) add(run addresses) {
	i, _ := slices.BinarySearchFunc(r.mapped, run.low, func(s addresses, a uint64) int { return cmp.Compare(s.low, a) })
	if i < len(r.mapped) && r.mapped[i].low == run.high {
		run.high = r.mapped[i].high
		r.mapped = slices.Delete(r.mapped, i, i+1)
	}
	if i > 0 && r.mapped[i-1].high == run.low {
		r.mapped[i-1].high = run.high
		return
	}
	r.mapped = slices.Insert(r.mapped, i, run)
}

// remove unmaps a range.
func (r *reservation) remove(cut addresses) {
	i, _ := slices.BinarySearchFunc(r.mapped, cut.low, func(s addresses, a uint64) int {
		if s.high <= a {
			return -1
		}
		return 1
	})
	end := i
	var left []addresses
	for ; end < len(r.mapped) && r.mapped[end].low < cut.high; end++ {
		s := r.mapped[end]
		if s.low < cut.low {
			left = append(left, addresses{s.low, cut.low})
		}
		if cut.high < s.high {
			left = append(left, addresses{cut.high, s.high})
		}
	}
	r.mapped = slices.Replace(r.mapped, i, end, left...)
}
