package placement

import (
	"cmp"
	"math"
	"slices"
)

// span is a range of offsets.
type span struct{ from, to uint64 }

// spans are ranges of offsets that do not touch each other, in their order.
type spans []span

// add joins a range with those that it touches, and reports whether it lay within
// one of them.
func (s spans) add(x span) (out spans, known bool) {
	begin, end := 0, len(s) // the first that ends at x or above
	for begin < end {
		if middle := (begin + end) / 2; s[middle].to < x.from {
			begin = middle + 1
		} else {
			end = middle
		}
	}
	if begin < len(s) && s[begin].from <= x.from && x.to <= s[begin].to {
		return s, true
	}
	for end = begin; end < len(s) && s[end].from <= x.to; end++ {
		x.from, x.to = min(x.from, s[end].from), max(x.to, s[end].to)
	}
	return slices.Replace(s, begin, end, x), false
}

// cut returns what is left of free ranges that have room for a size, in their order, without those that are taken. It writes into out.
func (s spans) cut(free []span, size uint64, out []span) []span {
	for _, f := range free {
		begin, _ := slices.BinarySearchFunc(s, f.from, func(x span, from uint64) int { return cmp.Or(cmp.Compare(x.to, from), -1) })
		s = s[begin:]
		at := f.from
		for _, x := range s {
			if x.from >= f.to {
				break
			}
			if x.from >= at && x.from-at >= size {
				out = append(out, span{at, x.from})
			}
			at = x.to
		}
		if at < f.to && f.to-at >= size {
			out = append(out, span{at, f.to})
		}
	}
	return out
}

// lifetimes finds the offsets that are taken at some time of a buffer's life. It is a
// tree over time, whose leaves are windows of many buffers. A buffer lies in the few
// nodes that are as large as possible and within its life, and at the edges of its
// life in windows. Full plans have few gaps: where hundreds of buffers live, spans
// are few.
type lifetimes struct {
	planner *planner
	leaves  int        // of the tree, a power of two
	all     []spans    // node -> taken all the time of the node by buffers that lie here
	some    []spans    // node -> taken at some time of the node, below it too
	ending  [][]ending // window -> where placed buffers lie that began before it and end in it
	packed  []int      // window -> how many were left when they were joined last
	ended   []spans    // window -> all of those
	until   []int32    // number -> the number at which it has ended; 0 as long as it is not placed
	moments []moment   // of large problems

	found       []span // scratch, as what follows
	lists       []spans
	free, spare []span
}

// moment is what is taken at a time. Who lives then need not look at what else is, where that is full.
type moment struct {
	at    int32
	taken spans
}

// ending is where buffers lie, and the number at which they have ended.
type ending struct {
	span
	until int32
}

// pack joins what ends at the same number and touches.
func pack(all []ending) []ending {
	slices.SortFunc(all, func(a, b ending) int { return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.from, b.from)) })
	out := all[:0]
	for _, e := range all {
		if n := len(out) - 1; n >= 0 && out[n].until == e.until && e.from <= out[n].to {
			out[n].to = max(out[n].to, e.to)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// window is how many buffers a leaf has. In problems of more than manyBuffers there are moments, manyMoments of them.
const (
	window      = 256
	manyBuffers = 16 * window
	manyMoments = 9
)

func (l *lifetimes) reset(buffers int) {
	windows := max((buffers+window-1)/window, 1)
	if l.leaves == 0 {
		for l.leaves = 1; l.leaves < windows; l.leaves *= 2 {
		}
		l.all, l.some = make([]spans, 2*l.leaves), make([]spans, 2*l.leaves)
		l.ending, l.packed, l.ended = make([][]ending, windows), make([]int, windows), make([]spans, windows)
	}
	if l.until == nil {
		l.until = make([]int32, buffers)
		if buffers > manyBuffers {
			for n := range manyMoments {
				l.moments = append(l.moments, moment{at: int32(n * (buffers - 1) / (manyMoments - 1))})
			}
		}
	}
	for i := range l.moments {
		l.moments[i].taken = l.moments[i].taken[:0]
	}
	clear(l.until)
	for i := range l.all {
		l.all[i], l.some[i] = l.all[i][:0], l.some[i][:0]
	}
	for i := range l.ending {
		l.ending[i], l.ended[i] = l.ending[i][:0], l.ended[i][:0]
	}
	clear(l.packed)
}

// add enters a buffer that has been placed.
func (l *lifetimes) add(i int32) {
	p := l.planner
	end := p.ends[i]
	l.until[i] = end
	x := p.lies[i]
	for n := range l.moments {
		if m := &l.moments[n]; i <= m.at && m.at < end {
			m.taken, _ = m.taken.add(x)
		}
	}
	first, last := (int(i)+window-1)/window, int(end)/window
	at, until := int(i)/window, (int(end)-1)/window
	if int(end) == len(p.buffers) { // what lives to the end, as all does in a run that died, lives through the last window
		last = l.leaves
	}
	if until > at && until >= last {
		l.ending[until] = append(l.ending[until], ending{x, end})
		if n := len(l.ending[until]); n >= 2*max(window, l.packed[until]) {
			l.ending[until] = pack(l.ending[until])
			l.packed[until] = len(l.ending[until])
		}
		l.ended[until], _ = l.ended[until].add(x)
	}
	l.enter(1, 0, l.leaves, at, until, first, last, x)
}

// enter notes a range in the nodes in whose time a buffer lives, but not below those
// that lie within its life: windows from at to until, of which those from first until
// last are whole. It reports whether that was known already: what is taken at some
// time of a node is taken at some time of those above, too, so there is nothing to do.
func (l *lifetimes) enter(node, from, to, at, until, first, last int, x span) (known bool) {
	if to <= at || until < from {
		return false
	}
	switch {
	case first <= from && to <= last:
		l.all[node], _ = l.all[node].add(x)
	case to-from > 1:
		middle := (from + to) / 2
		left := l.enter(2*node, from, middle, at, until, first, last, x)
		right := l.enter(2*node+1, middle, to, at, until, first, last, x)
		if left || right {
			return true
		}
	}
	l.some[node], known = l.some[node].add(x)
	return known
}

// mostListed is how many ranges are collected without a look at where there is room.
const mostListed = 4 * window

// during returns what is taken at some time of a buffer's life, in no order. Where very many live, what lies where there is no room anyway
// may be in one range with what is beside it. It is good until the next call.
func (l *lifetimes) during(i int32) []span {
	end := int(l.planner.ends[i])
	if end == len(l.planner.buffers) {
		end = l.leaves * window
	}
	l.found, l.lists = l.found[:0], l.lists[:0]
	l.look(1, 0, l.leaves, int(i), end)
	n := 0
	for _, s := range l.lists {
		n += len(s)
	}
	if n <= mostListed {
		for _, s := range l.lists {
			l.found = append(l.found, s...)
		}
		return l.found
	}
	for _, m := range l.moments {
		if i <= m.at && m.at < l.planner.ends[i] {
			l.lists = append(l.lists, m.taken)
		}
	}
	// What is nearly full has few ranges.
	slices.SortFunc(l.lists, func(a, b spans) int { return cmp.Compare(len(a), len(b)) })
	l.free = append(l.free[:0], span{0, math.MaxUint64})
	for _, s := range l.lists {
		l.free, l.spare = s.cut(l.free, l.planner.buffers[i].Size, l.spare[:0]), l.free
	}
	at := uint64(0)
	for _, f := range l.free {
		if at < f.from {
			l.found = append(l.found, span{at, f.from})
		}
		at = f.to
	}
	return l.found
}

// look collects from a node of the windows from until to, for a life in numbers.
func (l *lifetimes) look(node, from, to, begin, end int) {
	if to*window <= begin || end <= from*window {
		return
	}
	if begin <= from*window && to*window <= end {
		l.lists = append(l.lists, l.some[node])
		return
	}
	l.lists = append(l.lists, l.all[node])
	if to-from == 1 {
		l.scan(from, begin, end)
		return
	}
	middle := (from + to) / 2
	l.look(2*node, from, middle, begin, end)
	l.look(2*node+1, middle, to, begin, end)
}

// scan collects the buffers that begin or end in a window. Each is written down, and
// then counted or not: which of them live is not to be guessed by the processor.
func (l *lifetimes) scan(at, begin, end int) {
	p, n := l.planner, len(l.found)
	var before []ending
	switch {
	case at >= len(l.ending):
	case begin < at*window: // all of those live when the window begins, and so does this one
		l.lists = append(l.lists, l.ended[at])
	default:
		before = l.ending[at]
	}
	l.found = slices.Grow(l.found, len(before)+window)
	found := l.found[:cap(l.found)]
	for _, e := range before {
		found[n] = e.span
		if e.until > int32(begin) {
			n++
		}
	}
	if first, last := at*window, min((at+1)*window, end, len(p.lies)); first < last {
		until := l.until[first:last]
		for j, x := range p.lies[first:last] {
			found[n] = x
			if until[j] > int32(begin) {
				n++
			}
		}
	}
	l.found = found[:n]
}
