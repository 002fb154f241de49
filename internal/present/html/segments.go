package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// The map of segments, in units of its own. Segments lie side by side in rows,
// all to one scale.
const (
	mapWidth   = 960
	mapGap     = 4  // between neighbours
	mapBar     = 17 // height of a segment
	mapText    = 14 // height of what stands above it
	mapRowGap  = 5
	mapRows    = 16 // about so many, if the segments are small enough for them
	labelWidth = 96 // a narrower segment has no label
	leastWidth = 5  // narrower segments are put together
	hitWidth   = 9  // narrower blocks have no tooltip
)

// The states beside the categories of live blocks.
const (
	classPending  = "pending"
	classUnmapped = "unmapped"
)

// segmentMap is the allocator's map at one moment.
type segmentMap struct {
	Width, Height string
	Desc          string
	Outlines      string // path of all segments
	Fills         []curveLine
	Pinned        string // path of the marks below pinned segments
	Labels        []label
	Hits          []hit
	Bars          []bar // the request beside the largest free block
	Legend        []legendKey
	Caption       string
	Totals        []total
}

type label struct{ X, Y, Text string }

// hit is a block with a tooltip.
type hit struct{ X, Y, Width, Title string }

// bar is a size to the scale of the map.
type bar struct {
	Class, Y, Width, Text, TextX, TextY string
	Open                                bool // it goes on beyond the picture
}

// total is a sum at the moment.
type total struct {
	Size size
	Text string
}

// mapDrawing is a map being drawn.
type mapDrawing struct {
	subject *subject
	detail  detail
	row     uint64  // bytes of a row
	scale   float64 // units for a byte
	paths   map[string]*strings.Builder
	pinned  map[uint64]bool
	blocks  []placedBlock // wide enough for a tooltip
	out     *segmentMap

	outlines, marks strings.Builder
}

type placedBlock struct {
	timeline.MapBlock
	x, y, width float64
}

// piece is a segment, or the part of an expandable one that fits a row.
type piece struct {
	*timeline.MapSegment
	from, to uint64 // of its span
}

// mapRow is a row of pieces.
type mapRow struct {
	used     float64
	pieces   []piece
	labelled bool
}

// newSegmentMap draws the map at the moment; nil if there are no segments then.
func newSegmentMap(s *subject, d detail) *segmentMap {
	if s.trace == nil {
		return nil
	}
	m := s.layout.At(s.moment.event)
	if len(m.Segments) == 0 {
		return nil
	}
	w := &mapDrawing{subject: s, detail: d, paths: map[string]*strings.Builder{}, pinned: map[uint64]bool{}, out: &segmentMap{Width: px(mapWidth)}}
	if s.Explain != nil {
		for _, p := range s.Explain.Pinners {
			w.pinned[p.Address] = true
		}
	}
	var total, widest uint64 // what is expandable may be cut
	order := make([]*timeline.MapSegment, len(m.Segments))
	for i := range m.Segments {
		order[i] = &m.Segments[i]
		total += order[i].Span
		if !order[i].Expandable {
			widest = max(widest, order[i].Span)
		}
	}
	slices.SortStableFunc(order, func(a, b *timeline.MapSegment) int {
		return cmp.Or(cmp.Compare(b.Span, a.Span), cmp.Compare(a.Address, b.Address))
	})
	w.row = max(widest, total/mapRows, 1)
	if r := s.request(); r <= total { // a larger one goes on beyond the picture
		w.row = max(w.row, r)
	}
	w.scale = (mapWidth - 1) / float64(w.row)
	y := w.rows(order)
	y = w.compare(m, y)
	w.out.Height = px(y)
	w.fills()
	w.hits()
	w.describe(m)
	return w.out
}

// rows puts the segments into rows, the largest first, and draws them. It
// returns where the last row ends.
func (w *mapDrawing) rows(order []*timeline.MapSegment) float64 {
	var rows []*mapRow
	var small []*timeline.MapSegment
	for _, s := range order {
		if float64(s.Span)*w.scale < leastWidth {
			small = append(small, s)
			continue
		}
		for from := uint64(0); from < s.Span; from += w.row {
			rows = w.place(rows, piece{s, from, min(from+w.row, s.Span)})
		}
	}
	y := 0.0
	for _, r := range rows {
		if r.labelled {
			y += mapText
		}
		x := 0.5
		for _, p := range r.pieces {
			x = w.piece(p, x, y) + mapGap
		}
		y += mapBar + mapRowGap
	}
	if len(small) > 0 {
		y = w.together(small, y)
	}
	return y
}

// place puts a piece into the first row that has room.
func (w *mapDrawing) place(rows []*mapRow, p piece) []*mapRow {
	width := w.width(p)
	at := slices.IndexFunc(rows, func(r *mapRow) bool { return r.used+width <= mapWidth })
	if at < 0 {
		at = len(rows)
		rows = append(rows, &mapRow{})
	}
	r := rows[at]
	r.pieces = append(r.pieces, p)
	r.used += width + mapGap
	r.labelled = r.labelled || width >= labelWidth
	return rows
}

func (w *mapDrawing) width(p piece) float64 { return float64(p.to-p.from) * w.scale }

// piece draws one and returns where it ends.
func (w *mapDrawing) piece(p piece, x, y float64) float64 {
	width := w.width(p)
	w.outlines.WriteString(rect(x, y, width, mapBar))
	if w.pinned[p.Address] {
		w.marks.WriteString(rect(x, y+mapBar, width, 2.5))
	}
	free := uint64(0)
	for _, b := range p.Blocks {
		if b.State == timeline.BlockFree {
			free += b.Size
		}
		begin := max(b.Address-p.Address, p.from)
		end := min(b.Address-p.Address+b.Size, p.to)
		if begin >= end || b.State == timeline.BlockUnmapped {
			continue
		}
		if size := float64(end-begin) * w.scale; size >= hitWidth {
			w.blocks = append(w.blocks, placedBlock{b, x + float64(begin-p.from)*w.scale, y, size})
		}
	}
	w.columns(p, x, y, width)
	if width >= labelWidth {
		text := units.Size(p.Size)
		if p.from > 0 {
			text = "continued"
		} else if free > 0 && width >= 2*labelWidth {
			text += ", " + units.Size(free) + " free"
		}
		w.out.Labels = append(w.out.Labels, label{px(x), px(y - 3), text})
	}
	return x + width
}

// together draws the segments that are too small to be told apart as one.
func (w *mapDrawing) together(small []*timeline.MapSegment, y float64) float64 {
	var c share
	bytes, free := uint64(0), uint64(0)
	for _, s := range small {
		bytes += s.Size
		for i := range s.Blocks {
			b := &s.Blocks[i]
			if b.State == timeline.BlockUnmapped {
				continue
			}
			if b.State == timeline.BlockFree {
				free += b.Size
			}
			c.add(w.class(b), float64(b.Size))
		}
	}
	y += mapText
	width := min(max(float64(bytes)*w.scale, leastWidth), mapWidth-1)
	w.outlines.WriteString(rect(0.5, y, width, mapBar))
	x := 0.5
	for i := 1; i < len(classes); i++ {
		if c.bytes[i] > 0 {
			part := width * c.bytes[i] / c.all
			one := share{class: i, live: 1}
			w.fill(&one, x, y, part)
			x += part
		}
	}
	w.out.Labels = append(w.out.Labels, label{px(0.5), px(y - 3), fmt.Sprintf("%s of less than %s put together: %s, %s free",
		text.Plural(len(small), "segment", "segments"), units.Size(uint64(leastWidth/w.scale)), units.Size(bytes), units.Size(free))})
	return y + mapBar + mapRowGap
}

// compare draws the request and the largest free block to the scale of the map.
func (w *mapDrawing) compare(m *timeline.Map, y float64) float64 {
	request := w.subject.request()
	if request == 0 {
		return y
	}
	y += 6
	add := func(class, text string, bytes uint64) {
		width := float64(bytes) * w.scale
		b := bar{Class: class, Y: px(y), Width: px(width), Text: text, TextY: px(y + 11)}
		if width > mapWidth-1 {
			b.Width, b.Open = px(mapWidth-1), true
		}
		b.TextX = px(min(width, mapWidth-1) + 6)
		if width > mapWidth-300 {
			y += mapText
			b.Y, b.TextX, b.TextY = px(y), "0.5", px(y-3)
		}
		w.out.Bars = append(w.out.Bars, b)
		y += 14 + mapRowGap
	}
	add("request", "the request: "+units.Size(request), request)
	add("largest", "the largest free block: "+units.Size(m.LargestFree), m.LargestFree)
	if v := w.usable(); v != nil && *v != m.LargestFree {
		add("largest", "the largest that the request may take, of its own pool and stream: "+units.Size(*v), *v)
	}
	return y
}

// usable returns the largest free block of the request's own pool and stream.
func (w *mapDrawing) usable() *uint64 {
	if w.subject.Explain == nil {
		return nil
	}
	return w.subject.Explain.Evidence.LargestUsable
}

// fills lists the paths in a fixed order, and what the colours mean.
func (w *mapDrawing) fills() {
	w.out.Outlines, w.out.Pinned = w.outlines.String(), w.marks.String()
	for _, name := range classes[1:] {
		p := w.paths[name]
		if p == nil {
			continue
		}
		w.out.Fills = append(w.out.Fills, curveLine{name, p.String()})
		w.out.Legend = append(w.out.Legend, legendKey{name, className(name)})
	}
	w.out.Legend = append(w.out.Legend, legendKey{"free", "free"})
	if w.out.Pinned != "" {
		w.out.Legend = append(w.out.Legend, legendKey{"pinned", "pins free memory: an allocated block keeps the segment from release"})
	}
}

func className(class string) string {
	switch class {
	case classPending:
		return "freed, waiting for another stream"
	case classUnmapped:
		return "not mapped"
	}
	return text.CategoryText(class)
}

// hits gives the widest blocks a tooltip.
func (w *mapDrawing) hits() {
	slices.SortStableFunc(w.blocks, func(a, b placedBlock) int { return cmp.Compare(b.Size, a.Size) })
	for _, b := range w.blocks[:min(len(w.blocks), w.detail.hits)] {
		title := units.Size(b.Size) + " free"
		if b.Life >= 0 {
			title = units.Size(b.Size) + ", " + className(classes[w.class(&b.MapBlock)])
			if site := w.subject.site(w.subject.lifetimes.Stack(int(b.Life))); site != "" {
				title += ", " + w.detail.clip(site)
			}
		}
		w.out.Hits = append(w.out.Hits, hit{px(b.x), px(b.y), px(b.width), title})
	}
}

func (w *mapDrawing) describe(m *timeline.Map) {
	level := w.subject.totals.At(w.subject.moment.event)
	add := func(field string, bytes uint64, text string) {
		w.out.Totals = append(w.out.Totals, total{newSize(field, bytes), text})
	}
	add("segments.reserved_bytes", level.Reserved, "reserved, in "+text.Plural(len(m.Segments), "segment", "segments"))
	add("segments.allocated_bytes", level.Allocated, "allocated")
	if p := level.Pending(); p > 0 {
		add("segments.pending_bytes", p, "freed, waiting for another stream")
	}
	add("segments.free_bytes", m.Free, "free")
	add("segments.largest_free_bytes", m.LargestFree, "the largest free block")
	w.out.Desc = fmt.Sprintf("%s with %s reserved, %s free, the largest free block %s.",
		text.Plural(len(m.Segments), "segment", "segments"), units.Size(level.Reserved), units.Size(m.Free), units.Size(m.LargestFree))
	w.out.Caption = "Every box is a segment, the largest first, all to one scale. Where blocks are smaller than a column, its height shows how much of it is allocated."
	if !w.subject.lifetimes.Exact {
		w.out.Caption += " Blocks are drawn as large as they were requested."
	}
}

// rect returns a rectangle of a path.
func rect(x, y, width, height float64) string {
	return fmt.Sprintf("M%s %sh%sv%sh-%sz", px(x), px(y), px(width), px(height), px(width))
}
