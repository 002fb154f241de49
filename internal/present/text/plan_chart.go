package text

import (
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// ChartColumns returns how many columns a chart has: what its scale leaves.
func (s Style) ChartColumns() int {
	const scale = 15
	return s.TextColumns() - scale
}

// chartHeight is how many lines.
const chartHeight = 10

// chart draws two curves from a common zero: where both are, where only the
// first is and where only the second is have marks of their own.
type chart struct {
	a, b               []uint64
	both, onlyA, onlyB rune
	phases             []plan.Span
	legend             string
}

func (p *page) chart(c chart) {
	var most uint64
	for i := range c.a {
		most = max(most, c.a[i], c.b[i])
	}
	if most == 0 {
		return
	}
	for line := chartHeight; line >= 1; line-- {
		// A mark is drawn where the curve reaches the middle of its cell.
		at := (uint64(2*line-1)*most + 2*chartHeight - 1) / (2 * chartHeight)
		var text strings.Builder
		for i := range c.a {
			switch {
			case c.a[i] >= at && c.b[i] >= at:
				text.WriteRune(c.both)
			case c.a[i] >= at:
				text.WriteRune(c.onlyA)
			case c.b[i] >= at:
				text.WriteRune(c.onlyB)
			default:
				text.WriteByte(' ')
			}
		}
		label := ""
		if line == chartHeight {
			label = units.Size(most)
		} else if line == chartHeight/2 {
			label = units.Size(most / 2)
		}
		p.line("  %11s |%s", label, text.String())
	}
	p.line("  %11s |%s", "0", c.ruler())
	if c.legend != "" {
		p.line("              %s", c.legend)
	}
}

// ruler names the phases below a chart, where there is room.
func (c chart) ruler() string {
	line := []rune(strings.Repeat("-", len(c.a)))
	for _, s := range c.phases {
		name := []rune(s.Name)
		if s.Begin >= len(line) {
			break
		}
		if s.Begin > 0 { // the axis is there
			line[s.Begin] = '|'
		}
		end := min(s.End, len(line))
		if width := end - s.Begin - 1; width < len(name) {
			if width < 4 {
				continue
			}
			name = name[:width]
		}
		copy(line[s.Begin+1:], name)
	}
	return string(line)
}

// planTimeline draws the step.
func (p *page) planTimeline(a *plan.Outcome) {
	t := a.Timeline
	if t == nil || len(t.Allocated) == 0 {
		return
	}
	name := "The step"
	if n := len(t.Phases); n > 0 {
		switch first, last := t.Phases[0], t.Phases[n-1]; {
		case last.Name == "decode" || last.Name == "prefill":
			name = "The generation"
		case first.Name == "build" || first.Step != last.Step:
			name = "The run"
		}
	}
	p.heading(name, "")
	p.chart(chart{
		a: t.Allocated, b: t.Reserved, both: '#', onlyA: '#', onlyB: '.', phases: t.Phases,
		legend: "# allocated   . reserved   (columns: as many calls each)",
	})
}
