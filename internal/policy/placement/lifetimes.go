package placement

import (
	"cmp"
	"slices"
)

// span is a range of offsets.
type span struct{ from, to uint64 }

// spans are ranges of offsets that do not touch each other, in their order.
type spans []span

// add joins a range with those that it touches.
func (s spans) add(x span) spans {
	begin, _ := slices.BinarySearchFunc(s, x.from, func(y span, from uint64) int { return cmp.Compare(y.to, from) })
	end := begin
	for end < len(s) && s[end].from <= x.to {
		x.from, x.to = min(x.from, s[end].from), max(x.to, s[end].to)
		end++
	}
	return slices.Replace(s, begin, end, x)
}

// lifetimes finds the offsets that are taken at some time of a buffer's life. It is a
// tree over time, whose leaves are windows of many buffers. A buffer lies in the few
// nodes that are as large as possible and within its life, and at the edges of its
// life in windows. Full plans have few gaps: where hundreds of buffers live, spans
// are few.
type lifetimes struct {
	planner *planner
	leaves  int       // of the tree, a power of two
	all     []spans   // node -> taken all the time of the node by buffers that lie here
	some    []spans   // node -> taken at some time of the node, below it too
	ending  [][]int32 // window -> placed buffers that began before it and end in it
	found   []span    // scratch
}

// window is how many buffers a leaf has.
const window = 64

func (l *lifetimes) reset(buffers int) {
	windows := max((buffers+window-1)/window, 1)
	if l.leaves == 0 {
		for l.leaves = 1; l.leaves < windows; l.leaves *= 2 {
		}
		l.all, l.some, l.ending = make([]spans, 2*l.leaves), make([]spans, 2*l.leaves), make([][]int32, windows)
	}
	for i := range l.all {
		l.all[i], l.some[i] = l.all[i][:0], l.some[i][:0]
	}
	for i := range l.ending {
		l.ending[i] = l.ending[i][:0]
	}
}

// add enters a buffer that has been placed.
func (l *lifetimes) add(i int32) {
	p := l.planner
	end := p.ends[i]
	x := span{p.offsets[i], p.offsets[i] + p.buffers[i].Size}
	first, last := (int(i)+window-1)/window, int(end)/window
	at, until := int(i)/window, (int(end)-1)/window
	if until > at && until >= last {
		l.ending[until] = append(l.ending[until], i)
	}
	l.enter(1, 0, l.leaves, at, until, first, last, x)
}

// enter notes a range in the nodes in whose time a buffer lives, but not below those
// that lie within its life: windows from at to until, of which those from first until
// last are whole.
func (l *lifetimes) enter(node, from, to, at, until, first, last int, x span) {
	if to <= at || until < from {
		return
	}
	l.some[node] = l.some[node].add(x)
	if first <= from && to <= last {
		l.all[node] = l.all[node].add(x)
		return
	}
	if to-from == 1 {
		return
	}
	middle := (from + to) / 2
	l.enter(2*node, from, middle, at, until, first, last, x)
	l.enter(2*node+1, middle, to, at, until, first, last, x)
}

// during returns what is taken at some time of a buffer's life, in no order. It is
// good until the next call.
func (l *lifetimes) during(i int32) []span {
	end := l.planner.ends[i]
	l.found = l.found[:0]
	l.look(1, 0, l.leaves, int(i), int(end))
	return l.found
}

// look collects from a node of the windows from until to, for a life in numbers.
func (l *lifetimes) look(node, from, to, begin, end int) {
	if to*window <= begin || end <= from*window {
		return
	}
	if begin <= from*window && to*window <= end {
		l.found = append(l.found, l.some[node]...)
		return
	}
	l.found = append(l.found, l.all[node]...)
	if to-from == 1 {
		l.scan(from, begin, end)
		return
	}
	middle := (from + to) / 2
	l.look(2*node, from, middle, begin, end)
	l.look(2*node+1, middle, to, begin, end)
}

// scan collects the buffers that begin or end in a window.
func (l *lifetimes) scan(at, begin, end int) {
	p := l.planner
	take := func(j int) { l.found = append(l.found, span{p.offsets[j], p.offsets[j] + p.buffers[j].Size}) }
	if at < len(l.ending) {
		for _, j := range l.ending[at] {
			if int(p.ends[j]) > begin {
				take(int(j))
			}
		}
	}
	for j := at * window; j < min((at+1)*window, end, len(p.buffers)); j++ {
		if p.offsets[j] != unplaced && int(p.ends[j]) > begin {
			take(j)
		}
	}
}
