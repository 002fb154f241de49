package text

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// PlanSVG draws a sweep: reserved memory over the last axis, a line for each
// combination of the others. What does not fit is drawn hollow.
func PlanSVG(w io.Writer, head PlanHead, axes []plan.Axis, cells []plan.Cell) error {
	d := newSweepDrawing(head, axes, cells)
	p := &page{w: w}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">`+"\n", svgWidth, svgHeight)
	p.printf(`<style>text{fill:#24292f}.grid{stroke:#d0d7de}.limit{stroke:#cf222e;stroke-dasharray:6 4}.card{fill:#fff}` +
		`@media (prefers-color-scheme: dark){text{fill:#e6edf3}.grid{stroke:#30363d}.card{fill:#0d1117}}</style>` + "\n")
	p.printf(`<rect class="card" width="%d" height="%d"/>`+"\n", svgWidth, svgHeight)
	p.printf(`<text x="%d" y="24" font-size="14">%s</text>`+"\n", svgLeft, html.EscapeString(Clean(head.Name)+": peak reserved memory; hollow does not fit"))
	p.printf(`<text x="%d" y="42">%s</text>`+"\n", svgLeft, html.EscapeString(cut(head.Options, 110)))
	d.draw(p)
	p.printf("</svg>\n")
	return p.err
}

// The size of the drawing and its margins.
const (
	svgWidth, svgHeight = 860, 480
	svgLeft, svgRight   = 80, 200
	svgTop, svgBottom   = 60, 60
)

// svgColours are told apart by people who see colours differently too.
var svgColours = []string{"#0969da", "#bf8700", "#1a7f37", "#8250df", "#cf222e", "#57606a", "#bc4c00", "#1b7c83"}

// sweepDrawing is a sweep with its scales.
type sweepDrawing struct {
	x      plan.Axis
	at     []float64 // of each value of x, from 0 to 1
	groups []sweepLine
	most   uint64
	limit  uint64
}

// sweepLine is one combination of the axes before the last.
type sweepLine struct {
	name  string
	cells []plan.Cell
}

func newSweepDrawing(head PlanHead, axes []plan.Axis, cells []plan.Cell) *sweepDrawing {
	last := len(axes) - 1
	d := &sweepDrawing{x: axes[last], at: places(axes[last].Values)}
	for line := range slices.Chunk(cells, len(d.x.Values)) {
		var names []string
		for i, v := range line[0].Values[:last] {
			names = append(names, axes[i].Name+" "+v)
		}
		d.groups = append(d.groups, sweepLine{strings.Join(names, ", "), line})
	}
	for _, c := range cells {
		d.most = max(d.most, c.PeakReserved)
	}
	if c := head.Capacity.Card; c != nil {
		d.limit = c.AvailableBytes()
	}
	if n := head.Capacity.Limit; n > 0 && (d.limit == 0 || n < d.limit) {
		d.limit = n
	}
	// A limit far above all is left out rather than squeeze the rest.
	if d.limit > 0 && d.limit < 3*d.most {
		d.most = max(d.most, d.limit)
	}
	return d
}

// places puts values on the axis: numbers by their size, words evenly.
func places(values []string) []float64 {
	out := make([]float64, len(values))
	var low, high float64
	numbers := true
	for i, v := range values {
		n, err := strconv.ParseFloat(v, 64)
		numbers = numbers && err == nil
		if out[i] = n; i == 0 {
			low, high = n, n
		}
		low, high = min(low, n), max(high, n)
	}
	for i := range out {
		switch {
		case len(out) == 1:
			out[i] = 0.5
		case numbers && high > low:
			out[i] = (out[i] - low) / (high - low)
		default:
			out[i] = float64(i) / float64(len(out)-1)
		}
	}
	return out
}

func (d *sweepDrawing) left(i int) float64 {
	return svgLeft + 10 + d.at[i]*(svgWidth-svgLeft-svgRight-20)
}

func (d *sweepDrawing) height(bytes uint64) float64 {
	return svgHeight - svgBottom - float64(bytes)/(1.05*float64(max(d.most, 1)))*(svgHeight-svgTop-svgBottom)
}

func (d *sweepDrawing) draw(p *page) {
	for bytes := uint64(0); bytes <= d.most; bytes += gridStep(d.most) {
		y := d.height(bytes)
		p.printf(`<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+"\n", svgLeft, y, svgWidth-svgRight, y)
		p.printf(`<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", svgLeft-8, y+4, units.Size(bytes))
	}
	for i, v := range d.x.Values {
		p.printf(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", d.left(i), svgHeight-svgBottom+20, html.EscapeString(v))
	}
	p.printf(`<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (svgLeft+svgWidth-svgRight)/2, svgHeight-16, html.EscapeString(d.x.Name))
	if d.limit > 0 && d.limit <= d.most {
		y := d.height(d.limit)
		p.printf(`<line class="limit" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+"\n", svgLeft, y, svgWidth-svgRight, y)
		p.printf(`<text x="%d" y="%.1f">room %s</text>`+"\n", svgWidth-svgRight+6, y+4, units.Size(d.limit))
	}
	for n, g := range d.groups {
		d.line(p, g, n)
	}
}

// gridStep returns a round size of which four to ten make up the most.
func gridStep(most uint64) uint64 {
	step := uint64(1 << 20)
	for n := 0; most/step >= 10; n++ {
		if step < 1<<30 {
			step *= 2 // powers of two up to a GiB, then 1, 2, 5, 10
		} else if n%3 == 1 {
			step = step * 5 / 2
		} else {
			step *= 2
		}
	}
	return step
}

// line draws one combination; its name stands on the right.
func (d *sweepDrawing) line(p *page, g sweepLine, n int) {
	colour := svgColours[n%len(svgColours)]
	var points []string
	for i, c := range g.cells {
		if c.Error == "" {
			points = append(points, fmt.Sprintf("%.1f,%.1f", d.left(i), d.height(c.PeakReserved)))
		}
	}
	p.printf(`<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", colour, strings.Join(points, " "))
	for i, c := range g.cells {
		if c.Error != "" {
			continue
		}
		fill, said := colour, units.Size(c.PeakReserved)
		if c.Fits != nil && !*c.Fits {
			fill, said = "none", said+", does not fit"
		}
		p.printf(`<circle cx="%.1f" cy="%.1f" r="4" fill="%s" stroke="%s" stroke-width="2"><title>%s</title></circle>`+"\n",
			d.left(i), d.height(c.PeakReserved), fill, colour, html.EscapeString(strings.TrimPrefix(g.name+", ", ", ")+d.x.Name+" "+d.x.Values[i]+": "+said))
	}
	if g.name != "" {
		y := svgTop + 18*n
		p.printf(`<circle cx="%d" cy="%d" r="4" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", svgWidth-svgRight+14, y, colour, svgWidth-svgRight+24, y+4, html.EscapeString(cut(g.name, 26)))
	}
}
