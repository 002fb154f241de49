package text

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/run"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// HostSVG draws the memory of a typical run of each variant over time.
func HostSVG(w io.Writer, title string, c *run.Comparison) error {
	p := &page{w: w}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">`+"\n", svgWidth, svgHeight)
	p.printf(`<style>text{fill:#24292f}.grid{stroke:#d0d7de}.card{fill:#fff}` +
		`@media (prefers-color-scheme: dark){text{fill:#e6edf3}.grid{stroke:#30363d}.card{fill:#0d1117}}</style>` + "\n")
	p.printf(`<rect class="card" width="%d" height="%d"/>`+"\n", svgWidth, svgHeight)
	p.printf(`<text x="%d" y="24" font-size="14">%s</text>`+"\n", svgLeft, html.EscapeString(Clean(cut(title, 100))))
	p.printf(`<text x="%d" y="42">RSS of all its processes over time, a typical run of each variant</text>`+"\n", svgLeft)
	d := hostDrawing{}
	for i := range c.Results {
		if r := c.Results[i].Typical(); r != nil {
			d.add(r)
		}
	}
	d.draw(p)
	p.printf("</svg>\n")
	return p.err
}

// hostDrawing is runs with their scales.
type hostDrawing struct {
	runs   []*run.Run
	most   uint64
	length time.Duration
}

func (d *hostDrawing) add(r *run.Run) {
	d.runs = append(d.runs, r)
	for _, p := range r.Points {
		d.most = max(d.most, p.RSSBytes)
		d.length = max(d.length, p.At)
	}
}

func (d *hostDrawing) left(at time.Duration) float64 {
	return svgLeft + float64(at)/float64(max(d.length, 1))*(svgWidth-svgLeft-svgRight)
}

func (d *hostDrawing) height(bytes uint64) float64 {
	return svgHeight - svgBottom - float64(bytes)/(1.05*float64(max(d.most, 1)))*(svgHeight-svgTop-svgBottom)
}

func (d *hostDrawing) draw(p *page) {
	for bytes := uint64(0); bytes <= d.most; bytes += gridStep(d.most) {
		y := d.height(bytes)
		p.printf(`<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+"\n", svgLeft, y, svgWidth-svgRight, y)
		p.printf(`<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", svgLeft-8, y+4, units.Size(bytes))
	}
	step := timeStep(d.length)
	for at := time.Duration(0); at <= d.length; at += step {
		p.printf(`<text x="%.1f" y="%d" text-anchor="middle">%s s</text>`+"\n", d.left(at), svgHeight-svgBottom+20, secondsMark(at))
	}
	for n, r := range d.runs {
		d.line(p, r, n)
	}
}

// timeStep returns a round time of which four to ten make up the whole.
func timeStep(length time.Duration) time.Duration {
	step := 100 * time.Millisecond
	for n := 0; length/step >= 10; n++ {
		if n%3 == 1 {
			step = step * 5 / 2
		} else {
			step *= 2
		}
	}
	return step
}

func secondsMark(at time.Duration) string {
	if s := at.Seconds(); s != math.Trunc(s) {
		return fmt.Sprintf("%.1f", s)
	}
	return fmt.Sprintf("%.0f", at.Seconds())
}

// line draws a run; its name stands on the right. Where the colours begin anew
// the line is broken.
func (d *hostDrawing) line(p *page, r *run.Run, n int) {
	colour, dash := svgColours[n%len(svgColours)], ""
	if n >= len(svgColours) {
		dash = ` stroke-dasharray="6 3"`
	}
	var points []string
	for _, q := range r.Points {
		points = append(points, fmt.Sprintf("%.1f,%.1f", d.left(q.At), d.height(q.RSSBytes)))
	}
	p.printf(`<polyline fill="none" stroke="%s" stroke-width="2"%s points="%s"><title>%s</title></polyline>`+"\n",
		colour, dash, strings.Join(points, " "), html.EscapeString(r.Variant))
	y := svgTop + 18*n
	x := svgWidth - svgRight + 14
	p.printf(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="3"%s/><text x="%d" y="%d">%s</text>`+"\n",
		x, y, x+18, y, colour, dash, x+26, y+4, html.EscapeString(r.Variant))
}
