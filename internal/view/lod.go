package view

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// A picture of the timeline stacks what is there in each column in the order of
// allocation, from the bottom: blocks, or segments. A column shows the state at its end, so what
// begins and ends within one does not show.
//
// Of the lives that show, those with the largest area are drawn as rectangles.
// All others are a band on top, which is as high as the rectangles leave it: the
// whole is always exactly what is there. A life moves down when one below it
// ends, so it may need several rectangles; there are as many lives drawn as give
// at most maxRects.
//
// What is above a life in the stack was allocated after it. So a life never moves
// up, new ones come on top, and only those above one that ended have to be
// looked at: the work in a column is that of the rectangles that change there.

const (
	// maxRects is what the page can draw in one frame.
	maxRects = 50_000
	// leastArea is the area, in pixels, from which on something can be seen.
	leastArea = 0.25
	// maxMoves bounds the work of one try: how often a life moves down.
	maxMoves = 3_000_000
	// lag is how many pixels a rectangle may stand too high if there are too
	// many pieces otherwise.
	lag = 0.5
)

// picture is what is drawn of a window.
type picture struct {
	rects   []rect
	drawn   []uint64 // in each column, the sum of all drawn lives
	all     []uint64 // and of all that are kept; nil if that is all there is
	lagging bool     // rects may stand up to lag pixels too high
}

// rect is a piece of a life: columns c0 to c1-1, bytes y0 to y1.
type rect struct {
	y0, y1  uint64
	life    int32
	c0, c1  int32
	pending bool
}

// scale is the y axis: height pixels from low to high bytes.
type scale struct {
	low, high uint64
	height    int
}

// perByte is how many pixels a byte is high.
func (s scale) perByte() float64 { return float64(s.height) / float64(s.high-s.low) }

// shown is a life that shows in some columns.
type shown struct {
	life       int32
	c0, cf, c1 int32 // begins, is freed, is gone; cf is at most c1
}

// drawer holds what is needed while a picture is made.
type drawer struct {
	lives   *timeline.Spans
	keep    func(life int32) bool // nil: all
	columns int32
	table   []uint16
	all     []shown
	alive   []int32

	chosen  []shown
	changes []int32 // columns+1 of them: where the changes of a column begin
	order   []int32 // positions in chosen, by column of change
	stack   []standing
	at      []int32 // of chosen: position in stack
}

// standing is a life in the stack of the current column.
type standing struct {
	chosen int32
	since  int32  // column where its rectangle begins
	bottom uint64 // where it is
	drawn  uint64 // where its rectangle is
}

// drawers are kept for the next picture: their tables are large.
var drawers = sync.Pool{New: func() any { return new(drawer) }}

// draw makes the picture of a window, of at most so many rectangles. If keep is
// not nil, the lives for which it is false are left out, and what is above them
// moves down. A scale without an end is made to fit.
func draw(l *timeline.Spans, keep func(life int32) bool, w *window, y *scale, rects int) *picture {
	d := drawers.Get().(*drawer)
	defer drawers.Put(d)
	d.lives, d.keep, d.columns = l, keep, int32(len(w.ends))
	d.find(w)
	p := &picture{}
	if keep != nil {
		p.all = d.sums(d.all)
		if y.high == 0 {
			y.high = max(y.low+1, uint64(headroom*float64(slices.Max(p.all))))
		}
	}
	most := rects
	for try := 0; ; try++ {
		d.choose(most, *y)
		p.lagging = try > 0
		slack := uint64(0)
		if p.lagging {
			slack = uint64(lag / y.perByte())
		}
		done := d.pile(p, *y, slack, rects)
		if done == d.columns || len(d.chosen) <= 1 {
			break
		}
		// With half of the lives half as many end, and each moves half as many.
		if try > 0 {
			most = int(0.9 * float64(len(d.chosen)) * math.Sqrt(float64(done+1)/float64(d.columns)))
		}
	}
	p.drawn = d.sums(d.chosen)
	d.lives, d.keep = nil, nil
	return p
}

// sums adds lives up by column.
func (d *drawer) sums(lives []shown) []uint64 {
	out := make([]uint64, d.columns)
	for _, s := range lives {
		out[s.c0] += d.lives.Size[s.life]
		if s.c1 < d.columns {
			out[s.c1] -= d.lives.Size[s.life]
		}
	}
	for i := int32(1); i < d.columns; i++ {
		out[i] += out[i-1] // unsigned sums come out right
	}
	return out
}

// find lists the lives that show in the window, in order.
func (d *drawer) find(w *window) {
	l := d.lives
	first, last := w.ends[0], w.ends[len(w.ends)-1]
	column := w.columnOf(d.table)
	d.table = column.table
	d.all = d.all[:0]
	d.alive = l.Alive(d.alive[:0], int(first))
	for _, i := range d.alive {
		if d.keep != nil && !d.keep(i) {
			continue
		}
		d.all = append(d.all, shown{i, 0, column.column(l.Freed[i]), column.column(l.Gone[i])})
	}
	for i := l.Begun(int(first)); i < l.Len() && l.Born[i] <= last; i++ {
		c0, c1 := column.column(l.Born[i]), column.column(l.Gone[i])
		if c0 < c1 && (d.keep == nil || d.keep(int32(i))) {
			d.all = append(d.all, shown{int32(i), c0, column.column(l.Freed[i]), c1})
		}
	}
}

// areaBuckets is how many buckets there are for areas: sixteen to each power of
// two.
const areaBuckets = 65 * 16

// bucket orders areas roughly, without a sort.
func bucket(area uint64) int {
	n := bits.Len64(area)
	if n <= 5 {
		return int(area) // exact below 32
	}
	return n<<4 | int(area>>(n-5))&15
}

// choose takes the lives of the largest areas, at most so many.
func (d *drawer) choose(most int, y scale) {
	var lives [areaBuckets]int
	least := leastArea / y.perByte()
	for _, s := range d.all {
		area := d.lives.Size[s.life] * uint64(s.c1-s.c0)
		if float64(area) >= least {
			lives[bucket(area)]++
		}
	}
	// From the largest on, as many buckets as there is room for; of the next
	// one every so-many-th, so that no part of the picture is left out.
	cut, room := areaBuckets-1, most
	for ; cut >= 0 && lives[cut] <= room; cut-- {
		room -= lives[cut]
	}
	d.chosen = d.chosen[:0]
	part := 0
	for _, s := range d.all {
		area := d.lives.Size[s.life] * uint64(s.c1-s.c0)
		if float64(area) < least {
			continue
		}
		switch b := bucket(area); {
		case b < cut:
			continue
		case b == cut:
			if part += room; part < lives[cut] {
				continue
			}
			part -= lives[cut]
		}
		d.chosen = append(d.chosen, s)
	}
}

// pile stacks the chosen lives column by column. It returns how many columns it
// got through with so many rectangles and maxMoves.
func (d *drawer) pile(p *picture, y scale, slack uint64, rects int) int32 {
	p.rects = p.rects[:0]
	d.sortChanges()
	d.stack = d.stack[:0]
	d.at = append(d.at[:0], make([]int32, len(d.chosen))...)
	next := 0 // of chosen, to begin
	moves := 0
	top := uint64(0)
	for c := range d.columns {
		lowest := len(d.stack)
		for _, k := range d.order[d.changes[c]:d.changes[c+1]] {
			s := &d.chosen[k]
			if s.c1 == c {
				lowest = min(lowest, int(d.at[k]))
			} else { // it is freed here
				d.emit(p, y, &d.stack[d.at[k]], c)
			}
		}
		if lowest < len(d.stack) {
			moves += len(d.stack) - lowest
			top = d.sink(p, y, lowest, c, slack)
		}
		for ; next < len(d.chosen) && d.chosen[next].c0 == c; next++ {
			d.at[next] = int32(len(d.stack))
			d.stack = append(d.stack, standing{int32(next), c, top, top})
			top += d.lives.Size[d.chosen[next].life]
		}
		if len(p.rects) > rects || moves > maxMoves {
			return c
		}
	}
	for i := range d.stack {
		d.emit(p, y, &d.stack[i], d.columns)
	}
	if len(p.rects) > rects {
		return d.columns - 1
	}
	return d.columns
}

// sortChanges lists by column which lives are freed or end there.
func (d *drawer) sortChanges() {
	n := int(d.columns) + 1
	d.changes = append(d.changes[:0], make([]int32, n+1)...)
	each := func(f func(k, column int32)) {
		for k := range d.chosen {
			s := &d.chosen[k]
			if s.c1 < d.columns {
				f(int32(k), s.c1)
			}
			if s.c0 < s.cf && s.cf < s.c1 {
				f(int32(k), s.cf)
			}
		}
	}
	each(func(_, column int32) { d.changes[column+1]++ })
	for i := 1; i <= n; i++ {
		d.changes[i] += d.changes[i-1]
	}
	d.order = append(d.order[:0], make([]int32, d.changes[n])...)
	each(func(k, column int32) {
		d.order[d.changes[column]] = k
		d.changes[column]++
	})
	copy(d.changes[1:], d.changes[:n]) // they stand at the ends now
	d.changes[0] = 0
}

// sink takes lives that end out of the stack, and moves down what is above them.
// It returns where the stack ends then.
func (d *drawer) sink(p *picture, y scale, from int, column int32, slack uint64) (top uint64) {
	top = d.stack[from].bottom
	to := from
	for i := from; i < len(d.stack); i++ {
		t := d.stack[i]
		s := &d.chosen[t.chosen]
		if s.c1 == column {
			d.emit(p, y, &t, column)
			continue
		}
		if t.bottom = top; t.drawn-top > slack {
			d.emit(p, y, &t, column)
			t.drawn = top
		}
		top += d.lives.Size[s.life]
		d.stack[to] = t
		d.at[t.chosen] = int32(to)
		to++
	}
	d.stack = d.stack[:to]
	return top
}

// emit ends the rectangle of a life before a column, and begins the next.
func (d *drawer) emit(p *picture, y scale, t *standing, column int32) {
	s := &d.chosen[t.chosen]
	size := d.lives.Size[s.life]
	if since := t.since; since < column && t.drawn < y.high && t.drawn+size > y.low {
		p.rects = append(p.rects, rect{t.drawn, t.drawn + size, s.life, since, column, s.cf <= since})
	}
	t.since = column
}
