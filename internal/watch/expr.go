package watch

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/spelling"
)

// expr is a value that is computed from samples. NaN: it is not known.
type expr interface {
	eval(m *moment) float64
}

// moment is a sample of one GPU, and what was before it.
type moment struct {
	row    *Row
	now    time.Time
	seen   time.Time         // when the last sample came
	fresh  bool              // the row has not been evaluated before
	memory map[expr]*history // of the functions that look back
}

type constant float64

func (c constant) eval(*moment) float64 { return float64(c) }

type column int

func (c column) eval(m *moment) float64 {
	if v := m.row.V[c]; v != unknown {
		return float64(v)
	}
	return math.NaN()
}

type headroom struct{}

func (headroom) eval(m *moment) float64 {
	if v := m.row.Headroom(); v != unknown {
		return float64(v)
	}
	return math.NaN()
}

type silent struct{}

func (silent) eval(m *moment) float64 { return max(0, m.now.Sub(m.seen).Seconds()) }

type arithmetic struct {
	op   byte
	a, b expr
}

func (b *arithmetic) eval(m *moment) float64 {
	x, y := b.a.eval(m), b.b.eval(m)
	switch b.op {
	case '+':
		return x + y
	case '-':
		return x - y
	case '*':
		return x * y
	}
	if y == 0 {
		return math.NaN()
	}
	return x / y
}

// How far the functions look back.
const (
	rateWindow = time.Minute
	ratePoints = 600 // in it
	slopeSteps = 64  // at most
	slopeLeast = 8   // steps: fewer have no slope worth a name
)

// point is a value at a place: a time in seconds or a step.
type point struct{ at, value float64 }

type history struct{ points []point }

// past is what a function remembers of the GPU of a moment.
func (m *moment) past(e expr) *history {
	h := m.memory[e]
	if h == nil {
		h = &history{}
		m.memory[e] = h
	}
	return h
}

// rate is the change per second over the last minute.
type rate struct{ of expr }

func (r *rate) eval(m *moment) float64 {
	h := m.past(r)
	if m.fresh {
		v, at := r.of.eval(m), float64(m.row.V[Time])/1e6
		n := len(h.points)
		switch {
		case math.IsNaN(v) || n > 0 && at <= h.points[n-1].at:
		case n > 1 && at-h.points[n-2].at < rateWindow.Seconds()/ratePoints: // the last one alone is kept of what comes so often
			h.points[n-1] = point{at, v}
		default:
			h.points = append(h.points, point{at, v})
		}
		// One point older than the window stays: the change since then counts.
		old := 0
		for old+2 < len(h.points) && h.points[old+1].at <= at-rateWindow.Seconds() {
			old++
		}
		h.points = slices.Delete(h.points, 0, old)
	}
	if len(h.points) < 2 {
		return math.NaN()
	}
	first, last := h.points[0], h.points[len(h.points)-1]
	return (last.value - first.value) / (last.at - first.at)
}

// slope is the change per step: the line with the least squares through the
// last values of the last steps.
type slope struct{ of expr }

func (s *slope) eval(m *moment) float64 {
	h := m.past(s)
	if m.fresh && m.row.V[Step] != unknown {
		v, at := s.of.eval(m), float64(m.row.V[Step])
		n := len(h.points)
		switch {
		case math.IsNaN(v):
		case n > 0 && at == h.points[n-1].at:
			h.points[n-1].value = v
		case n > 0 && at < h.points[n-1].at: // the steps began anew
			h.points = append(h.points[:0], point{at, v})
		case n == slopeSteps:
			h.points = append(slices.Delete(h.points, 0, 1), point{at, v})
		default:
			h.points = append(h.points, point{at, v})
		}
	}
	if len(h.points) < slopeLeast {
		return math.NaN()
	}
	var x, y float64
	for _, p := range h.points {
		x, y = x+p.at, y+p.value
	}
	x, y = x/float64(len(h.points)), y/float64(len(h.points))
	var xy, xx float64
	for _, p := range h.points {
		xy, xx = xy+(p.at-x)*(p.value-y), xx+(p.at-x)*(p.at-x)
	}
	return xy / xx
}

// The grammar: sums of products of numbers, names, calls and parentheses.

func (p *parser) sum() expr {
	e := p.product()
	for {
		p.space()
		switch {
		case strings.HasPrefix(p.text[p.at:], "->"):
			return e
		case p.take("+"):
			e = &arithmetic{'+', e, p.product()}
		case p.take("-"):
			e = &arithmetic{'-', e, p.product()}
		default:
			return e
		}
	}
}

func (p *parser) product() expr {
	e := p.operand()
	for {
		switch {
		case p.take("*"):
			e = &arithmetic{'*', e, p.operand()}
		case p.take("/"):
			e = &arithmetic{'/', e, p.operand()}
		default:
			return e
		}
	}
}

// maxDepth bounds parentheses in parentheses.
const maxDepth = 100

func (p *parser) operand() expr {
	p.space()
	at := p.at
	switch {
	case at == len(p.text):
		p.wrong(at, "a name or a number is missing: the line ends here")
	case p.take("("):
		return p.inner()
	case p.text[at] >= '0' && p.text[at] <= '9' || p.text[at] == '.':
		return constant(p.number())
	}
	name := p.word("a name or a number")
	if i := slices.Index(Names[:], name); i >= 0 {
		return column(i)
	}
	switch name {
	case "headroom":
		return headroom{}
	case "silent":
		p.silent = true
		p.expect("(", "after silent")
		p.expect(")", "after silent(")
		return silent{}
	case "rate":
		p.expect("(", "after rate")
		return &rate{p.inner()}
	case "slope_per_step":
		p.expect("(", "after slope_per_step")
		return &slope{p.inner()}
	}
	known := append(slices.Clone(Names[:]), "headroom", "rate", "slope_per_step", "silent")
	p.wrong(at, "%q is no number of a sample%s", name, spelling.DidYouMean(name, known))
	return nil
}

// inner reads what is in parentheses, behind the first.
func (p *parser) inner() expr {
	if p.depth++; p.depth > maxDepth {
		p.wrong(p.at, "there are more than %d parentheses in each other", maxDepth)
	}
	e := p.sum()
	p.expect(")", "after the expression")
	p.depth--
	return e
}
