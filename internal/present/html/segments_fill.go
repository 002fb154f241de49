package html

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// columns fills a piece. A column of one unit shows the shares of what is in it,
// live memory below; neighbours that look the same are one rectangle.
func (w *mapDrawing) columns(p piece, x, y, width float64) {
	perColumn := 1 / w.scale // bytes
	at := 0                  // the block at which the column begins
	var run share
	begin := 0
	for i := range int(width + 0.999) {
		var c share
		from := float64(p.from) + float64(i)*perColumn
		to := min(from+perColumn, float64(p.to))
		for ; at < len(p.Blocks); at++ {
			b := &p.Blocks[at]
			first := float64(b.Address - p.Address)
			last := first + float64(b.Size)
			if part := min(last, to) - max(first, from); part > 0 {
				c.add(w.class(b), part)
			}
			if last > to {
				break
			}
		}
		c.close()
		if i > begin && !c.same(&run) {
			w.fill(&run, x+float64(begin), y, float64(i-begin))
			begin = i
		}
		run = c
	}
	w.fill(&run, x+float64(begin), y, width-float64(begin))
}

// share is what a column is made of.
type share struct {
	bytes [16]float64 // by position in classes
	all   float64
	live  float64 // part of all, after close
	class int     // the one of most live bytes; -1 if none
}

// classes are what a byte of a segment can be; the first is free.
var classes = func() []string {
	list := []string{"free", classPending, classUnmapped}
	for _, c := range findings.Categories() {
		list = append(list, string(c))
	}
	return list
}()

func (c *share) add(class int, bytes float64) {
	c.bytes[class] += bytes
	c.all += bytes
}

func (c *share) close() {
	c.class = -1
	live, most := 0.0, 0.0
	for i := 1; i < len(classes); i++ {
		live += c.bytes[i]
		if c.bytes[i] > most {
			most, c.class = c.bytes[i], i
		}
	}
	if c.all > 0 {
		c.live = float64(int(mapBar*live/c.all+0.5)) / mapBar // in units of the height
	}
	if c.live == 0 && live > 0 {
		c.live = 1.0 / mapBar
	}
}

func (c *share) same(o *share) bool { return c.class == o.class && c.live == o.live }

// fill draws a run of columns.
func (w *mapDrawing) fill(c *share, x, y, width float64) {
	if c.class < 0 || width <= 0 {
		return
	}
	height := c.live * mapBar
	name := classes[c.class]
	if w.paths[name] == nil {
		w.paths[name] = &strings.Builder{}
	}
	w.paths[name].WriteString(rect(x, y+mapBar-height, width, height))
}

func (w *mapDrawing) class(b *timeline.MapBlock) int {
	switch b.State {
	case timeline.BlockFree:
		return 0
	case timeline.BlockPending:
		return slices.Index(classes, classPending)
	case timeline.BlockUnmapped:
		return slices.Index(classes, classUnmapped)
	}
	return max(0, slices.Index(classes, w.subject.category(b.Life)))
}
