package html

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// The picture of the curves, in units of its own: it is as wide as the page.
const (
	curveWidth  = 960
	curveHeight = 330
	plotLeft    = 84
	plotRight   = 944
	plotTop     = 24
	plotBottom  = 278
)

// curveColumns is how many columns the curves have at most: about one for each
// pixel of the plot.
const curveColumns = 860

// More steps or failures than this are a grey area.
const (
	maxStepLines    = 80
	maxFailureLines = 100
)

// curves is the memory over the run.
type curves struct {
	Width, Height            int
	Left, Right, Top, Bottom int
	Desc                     string
	Reserved                 string // path of an area
	Lines                    []curveLine
	YTicks, XTicks           []tick
	Steps                    []tick
	Timed                    bool // the file has times
	Limit                    *limitMark
	Failures                 []string // places on the x axis
	Failure                  *failureMark
	Peaks                    []dot
	Legend                   []legendKey
	Caption                  string
}

type curveLine struct{ Class, Path string }

// tick is a mark on an axis.
type tick struct{ At, Label, Under string }

// limitMark is where the cap on reserved memory was: a line, or a band if only
// its ends are known.
type limitMark struct{ Top, Height, Label, Baseline string }

// failureMark is the failed request on top of what was live.
type failureMark struct{ X, Top, Height, Label, LabelX, Anchor string }

type dot struct{ X, Y, Class, Title string }

type legendKey struct{ Class, Text string }

// column has the highest sums of a piece of the run.
type column struct {
	first, last int // events
	high        timeline.Level
}

// columns cuts the run into pieces of equally many events.
func (s *subject) columns() []column {
	events := s.events()
	n := min(events, curveColumns)
	out := make([]column, n)
	for i := range out {
		c := &out[i]
		c.first, c.last = i*events/n, (i+1)*events/n-1
		c.high, _ = s.totals.Highest(c.first, c.last)
	}
	return out
}

// plot turns events and bytes into places of the picture.
type plot struct {
	events int
	high   float64 // bytes at the top
}

func (p plot) x(event float64) float64 {
	return plotLeft + (plotRight-plotLeft)*event/float64(p.events)
}

func (p plot) y(bytes uint64) float64 {
	return plotBottom - (plotBottom-plotTop)*float64(bytes)/p.high
}

// path draws one sum as steps.
func (p plot) path(columns []column, of func(*timeline.Level) uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%s %s", px(p.x(0)), px(p.y(of(&columns[0].high))))
	before := px(p.y(of(&columns[0].high)))
	for i := range columns {
		c := &columns[i]
		if y := px(p.y(of(&c.high))); y != before {
			fmt.Fprintf(&b, "V%s", y)
			before = y
		}
		fmt.Fprintf(&b, "H%s", px(p.x(float64(c.last+1))))
	}
	return b.String()
}

// area returns a path closed along the bottom.
func (p plot) area(path string) string {
	return fmt.Sprintf("%sV%dH%dz", path, plotBottom, plotLeft)
}

// newCurves draws the run; nil if it has no events.
func newCurves(s *subject, d detail) *curves {
	if s.trace == nil || s.events() == 0 {
		return nil
	}
	columns := s.columns()
	var top timeline.Level
	for i := range columns {
		h := &columns[i].high
		top.Reserved, top.Active = max(top.Reserved, h.Reserved), max(top.Active, h.Active)
	}
	limit, high := s.limits()
	need := uint64(0)
	failed := s.moment.failed && s.moment.event >= 0
	if failed {
		need = s.totals.At(s.moment.event).Allocated + s.request()
	}
	most := max(top.Reserved, top.Active, 1)
	// A limit or a request far away would press the curves flat.
	if far := 2 * most; need <= far {
		most = max(most, need)
	}
	if high > 0 && high <= 2*most {
		most = max(most, high)
	}
	p := plot{events: s.events(), high: float64(most) * 1.04}
	c := &curves{
		Width: curveWidth, Height: curveHeight, Left: plotLeft, Right: plotRight, Top: plotTop, Bottom: plotBottom,
		YTicks: p.yTicks(), XTicks: s.xTicks(p), Steps: s.stepTicks(p),
		Timed: s.clock.First != trace.NoTime,
	}
	c.Reserved = p.area(p.path(columns, func(l *timeline.Level) uint64 { return l.Reserved }))
	c.lines(s, p, columns)
	c.mark(s, p, d)
	if high > 0 && float64(high) <= p.high {
		c.limit(p, limit, high)
	}
	if failed {
		c.failure(s, p, need)
	}
	c.describe(s, columns)
	return c
}

// lines draws the sums. What is the same as another is not drawn twice.
func (c *curves) lines(s *subject, p plot, columns []column) {
	add := func(class, text string, of func(*timeline.Level) uint64) {
		c.Lines = append(c.Lines, curveLine{class, p.path(columns, of)})
		c.Legend = append(c.Legend, legendKey{class, text})
	}
	// A free that completes at once is pending for no time.
	pending, rounded := s.peaks.Pending.Value > 0, false
	for i := range columns {
		h := &columns[i].high
		rounded = rounded || float64(h.Active-min(h.Active, h.Requested)) > 0.01*float64(h.Active)
	}
	// What was served last is drawn last, on top.
	add("reserved", "reserved: what PyTorch holds of the device", func(l *timeline.Level) uint64 { return l.Reserved })
	if pending {
		add("active", "active: allocated, or freed but waiting for another stream", func(l *timeline.Level) uint64 { return l.Active })
	}
	what := "allocated"
	if !s.lifetimes.Exact {
		what = "allocated, as requested (block sizes are not known)"
	} else if rounded {
		add("requested", "requested: what the program asked for", func(l *timeline.Level) uint64 { return l.Requested })
	}
	c.Lines = append(c.Lines, curveLine{"allocated-fill", p.area(p.path(columns, func(l *timeline.Level) uint64 { return l.Allocated }))})
	add("allocated", what, func(l *timeline.Level) uint64 { return l.Allocated })
}

// mark puts dots on the peaks.
func (c *curves) mark(s *subject, p plot, d detail) {
	add := func(class, name string, peak timeline.Peak) {
		if peak.Value == 0 {
			return
		}
		m := text.MomentText(s.place(peak))
		c.Peaks = append(c.Peaks, dot{
			X: px(p.x(float64(peak.Event) + 0.5)), Y: px(p.y(peak.Value)), Class: class,
			Title: d.clip(fmt.Sprintf("peak of %s: %s, %s", name, units.Size(peak.Value), m)),
		})
		c.Legend = append(c.Legend, legendKey{"dot " + class, d.clip(fmt.Sprintf("peak of %s %s, %s", name, units.Size(peak.Value), m))})
	}
	add("reserved", "reserved", s.peaks.Reserved)
	if s.line.Exact {
		add("allocated", "allocated", s.peaks.Allocated)
	} else {
		add("allocated", "requested", s.peaks.Requested)
	}
}

func (c *curves) limit(p plot, low, high uint64) {
	y := p.y(high)
	m := &limitMark{Top: px(y), Height: px(p.y(low) - y), Label: "limit " + units.Size(high), Baseline: px(y - 5)}
	said := "limit " + units.Size(high)
	if units.Size(low) != units.Size(high) {
		m.Label = fmt.Sprintf("limit %s to %s", units.Size(low), units.Size(high))
		said = "limit: somewhere in the band, " + strings.TrimPrefix(m.Label, "limit ")
	}
	c.Limit = m
	c.Legend = append(c.Legend, legendKey{"limit", said})
}

// failure draws the request on top of what was live, up to the top of the plot.
func (c *curves) failure(s *subject, p plot, need uint64) {
	at := p.x(float64(s.moment.event) + 0.5)
	live := s.totals.At(s.moment.event).Allocated
	top := max(p.y(need), plotTop)
	f := &failureMark{X: px(at), Top: px(top), Height: px(p.y(live) - top), Label: "request failed", LabelX: px(at), Anchor: "middle"}
	switch {
	case at > plotRight-60:
		f.LabelX, f.Anchor = px(plotRight), "end"
	case at < plotLeft+60:
		f.LabelX, f.Anchor = px(plotLeft), "start"
	}
	c.Failure = f
	c.Legend = append(c.Legend, legendKey{"failure", fmt.Sprintf("the failed request, %s, on top of what was allocated: %s in all",
		units.Size(s.request()), units.Size(need))})
	for _, o := range s.peaks.OOMs[:min(len(s.peaks.OOMs), maxFailureLines)] {
		if o.Index != s.moment.event {
			c.Failures = append(c.Failures, px(p.x(float64(o.Index)+0.5)))
		}
	}
	if len(s.peaks.OOMs) > 1 {
		c.Legend = append(c.Legend, legendKey{"other", fmt.Sprintf("other failed requests, %s in all", units.Count(int64(len(s.peaks.OOMs))))})
	}
}

func (c *curves) describe(s *subject, columns []column) {
	c.Desc = fmt.Sprintf("Reserved and allocated memory over %s. Peak of reserved %s.",
		text.Plural(s.events(), "event", "events"), units.Size(s.peaks.Reserved.Value))
	c.Caption = "Each event of the allocator takes the same width, whatever time it took"
	if n := s.events() / len(columns); n > 1 {
		c.Caption += fmt.Sprintf("; each column shows the highest of about %s events", units.Count(int64(n)))
	}
	c.Caption += "."
	if len(c.Steps) > 0 {
		c.Caption += " Thin lines: where steps begin."
	}
	if s.trace.Partial && !s.line.AtLeast {
		c.Caption += " The file ends early: these are not all events."
	}
	if s.line.AtLeast {
		c.Caption += " All sums are lower bounds: the file ends early and began with memory that it does not tell of."
	}
}

// yTicks are at round numbers of bytes, so that what is written is exact.
func (p plot) yTicks() []tick {
	const most = 6
	step := 1.0
	for p.high/step > most {
		step *= 2
	}
	var out []tick
	for v := 0.0; v <= p.high; v += step {
		out = append(out, tick{At: px(p.y(uint64(v))), Label: units.Tick(uint64(v), uint64(p.high))})
	}
	return out
}

// xTicks are at round numbers of events, with the time below.
func (s *subject) xTicks(p plot) []tick {
	step := roundStep(p.events)
	format := "%.2f s"
	if s.clock.Last-s.clock.First < 1e6 {
		format = "%.3f s"
	}
	var out []tick
	for e := 0; e < p.events; e += step {
		t := tick{At: px(p.x(float64(e))), Label: units.Count(int64(e))}
		if at := s.clock.First; at != trace.NoTime {
			t.Under = fmt.Sprintf(format, float64(s.clock.At(e)-at)/1e6)
		}
		out = append(out, t)
	}
	return out
}

// roundStep returns the smallest round number that goes into n no more than
// some times.
func roundStep(n int) int {
	const most = 8
	for scale := 1; ; scale *= 10 {
		for _, m := range []int{1, 2, 5} {
			if n/(m*scale) <= most {
				return m * scale
			}
		}
	}
}

// stepTicks returns where the steps of the program begin.
func (s *subject) stepTicks(p plot) []tick {
	list := s.analysis.Steps.List
	if len(list) > maxStepLines {
		return nil
	}
	var out []tick
	for _, step := range list {
		out = append(out, tick{At: px(p.x(float64(step.Begin))), Label: fmt.Sprint(step.Number)})
	}
	return out
}
