package view

import (
	"encoding/binary"
	"math"

	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// The binary form of a picture: a header of 16 words, then rectangles, then
// columns, all little endian.
const (
	pictureMagic   = 0x41534854
	pictureVersion = 2
	headerBytes    = 64
	rectBytes      = 24
	columnBytes    = 24

	pictureHighest = 1 << 0 // columns have the highest of their states
	pictureLagging = 1 << 1 // rectangles may stand a little too high
)

// headroom is left free above the highest curve.
const headroom = 1.05

// timeline is api/timeline.
func (r *request) timeline() error {
	q := r.query
	width, height := q.integer("width", 1600, 1, maxWidth), q.integer("height", 800, 1, maxHeight)
	w := r.window(width)
	of := r.stacked()
	paint := r.run.painter(of, q.choice("color", colourings...))
	chosen := r.selection(of)
	highest := q.flag("peak")
	keep := r.keeper(of, w, chosen)
	y := scale{low: q.size("ymin", 0), high: q.size("ymax", 0), height: height}
	if y.high == 0 && keep == nil {
		high, _ := r.run.course.Highest(int(w.before)+1, int(w.ends[width-1]))
		y.high = max(1, y.low+1, uint64(headroom*float64(max(high.Reserved, high.Active))))
	}
	if y.high > 0 && y.low >= y.high {
		q.bad("ymin is %d and ymax %d: ymax must be the larger one", y.low, y.high)
	}
	if q.err != nil {
		return q.err
	}
	p := draw(of.Spans, keep, w, &y, maxRects)
	out := make([]byte, 0, headerBytes+rectBytes*len(p.rects)+columnBytes*width)
	out = p.header(out, w, y, highest)
	for i := range p.rects {
		rect := &p.rects[i]
		colour := paint(rect.life) & (1<<colourBits - 1)
		if !chosen.has(int(rect.life)) {
			colour |= flagDimmed
		}
		if rect.pending {
			colour |= flagPending
		}
		if of.Freed[rect.life] == timeline.Never {
			colour |= flagForever
		}
		out = y.rect(out, rect, of.name(int(rect.life)), colour)
	}
	out = r.run.columns(out, of, w, y, p, highest)
	return r.send("application/octet-stream", out)
}

// keeper reads only, which leaves out what is not selected, and moving, which
// leaves out what lives through the whole window. It returns nil if nothing is
// left out.
func (r *request) keeper(of *stacked, w *window, chosen *selection) func(life int32) bool {
	only, moving := r.query.flag("only") && chosen.any, r.query.flag("moving")
	if !only && !moving {
		return nil
	}
	before, end := w.before, w.ends[len(w.ends)-1]
	return func(i int32) bool {
		if moving && of.Born[i] <= before && of.Gone[i] > end {
			return false
		}
		return !only || chosen.has(int(i))
	}
}

func (p *picture) header(out []byte, w *window, y scale, highest bool) []byte {
	word := binary.LittleEndian.AppendUint32
	double := func(out []byte, x float64) []byte { return binary.LittleEndian.AppendUint64(out, math.Float64bits(x)) }
	flags := uint32(0)
	if highest {
		flags |= pictureHighest
	}
	if p.lagging {
		flags |= pictureLagging
	}
	out = word(out, pictureMagic)
	out = word(out, pictureVersion)
	out = word(out, uint32(len(p.rects)))
	out = word(out, uint32(len(w.ends)))
	out = word(out, 1) // bands
	out = word(out, flags)
	out = double(out, float64(y.high))
	out = double(out, w.x0)
	out = double(out, w.x1)
	out = double(out, float64(y.low))
	return double(out, 0)
}

func (y scale) pixel(bytes uint64) float32 {
	return float32((float64(bytes) - float64(y.low)) * y.perByte())
}

func single(out []byte, x float32) []byte {
	return binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
}

func (y scale) rect(out []byte, r *rect, name, colour uint32) []byte {
	out = single(out, float32(r.c0))
	out = single(out, float32(r.c1))
	out = single(out, y.pixel(r.y0))
	out = single(out, y.pixel(r.y1))
	out = binary.LittleEndian.AppendUint32(out, name)
	return binary.LittleEndian.AppendUint32(out, colour)
}

// columns writes the curves, and after which event each column's state is. What
// is pending is a height of its own.
func (r *pageRun) columns(out []byte, of *stacked, w *window, y scale, p *picture, highest bool) []byte {
	before := int(w.before)
	for i, end := range w.ends {
		level := r.course.At(int(end))
		high, _ := r.course.Highest(before+1, int(end))
		before = int(end)
		// Of a file that contradicts itself more may be drawn.
		live := max(of.height(&level), p.drawn[i])
		top := max(live, of.height(&high))
		switch {
		case p.all != nil:
			live, top = p.all[i], p.all[i]
		case highest:
			live = top
		}
		out = single(out, y.pixel(live))
		out = single(out, y.pixel(p.drawn[i]))
		out = single(out, y.pixel(level.Reserved))
		out = single(out, float32(float64(level.Pending())*y.perByte()))
		out = single(out, y.pixel(top))
		out = binary.LittleEndian.AppendUint32(out, uint32(end))
	}
	return out
}

// curve has the highest sums of each column, and some at its end.
type curve struct {
	X         []float64 `json:"x"`
	Event     []int32   `json:"event"`
	Reserved  []uint64  `json:"reserved"`
	Allocated []uint64  `json:"allocated"`
	Active    []uint64  `json:"active"`
	Requested []uint64  `json:"requested"`
	Pending   []uint64  `json:"pending"` // above zero at every ordinary free
	LiveEnd   []uint64  `json:"live_end"`
	HeldEnd   []uint64  `json:"reserved_end"`
	AskedEnd  []uint64  `json:"requested_end"`
	WaitEnd   []uint64  `json:"pending_end"`
}

// curve is api/curve.
func (r *request) curve() error {
	n := r.query.integer("n", 1600, 1, maxWidth)
	w := r.window(n)
	if r.query.err != nil {
		return r.query.err
	}
	c := &curve{Event: w.ends}
	before := int(w.before)
	for i, end := range w.ends {
		high, pending := r.run.course.Highest(before+1, int(end))
		before = int(end)
		level := r.run.course.At(before)
		c.X = append(c.X, w.edge(i))
		c.Reserved, c.Allocated = append(c.Reserved, high.Reserved), append(c.Allocated, high.Allocated)
		c.Active, c.Requested = append(c.Active, high.Active), append(c.Requested, high.Requested)
		c.Pending, c.LiveEnd = append(c.Pending, pending), append(c.LiveEnd, level.Active)
		c.HeldEnd = append(c.HeldEnd, level.Reserved)
		c.AskedEnd, c.WaitEnd = append(c.AskedEnd, level.Requested), append(c.WaitEnd, level.Pending())
	}
	return r.json(c)
}
