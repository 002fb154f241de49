package plan

import "github.com/ashlar-mem/ashlar/internal/plan/ledger"

// curve draws both over the planned events: what was measured between two
// matched allocations lies between their planned ones.
func (c *comparison) curve(points int) {
	n := c.to - c.from + 1
	points = min(points, n)
	if points <= 0 {
		return
	}
	column := func(event int) int { return min(max((event-c.from)*points/n, 0), points-1) }
	out := &c.out.Curve
	out.Planned, out.Measured = make([]uint64, points), make([]uint64, points)
	var live uint64
	for i := 0; i <= c.to; i++ {
		if e := c.ledger.Events[i]; e >= 0 {
			live += uint64(c.ledger.Tensors[e].Bytes)
		} else if e != ledger.EmptyCache {
			live -= uint64(c.ledger.Tensors[^e].Bytes)
		}
		if i >= c.from {
			raise(out.Planned, column(i), live)
		}
	}
	c.measuredCurve(out.Measured, column)
	for i, p := range c.ledger.Phases {
		end := len(c.ledger.Events)
		if i+1 < len(c.ledger.Phases) {
			end = c.ledger.Phases[i+1].First
		}
		if end <= c.from || p.First > c.to {
			continue
		}
		out.Phases = append(out.Phases, Span{p.Name, p.Step, column(p.First), column(end-1) + 1})
	}
}

func raise(at []uint64, i int, to uint64) { at[i] = max(at[i], to) }

// measuredCurve adds the recording up. Its columns are those of the matched
// allocations; what lies between two of them is spread evenly.
func (c *comparison) measuredCurve(out []uint64, column func(int) int) {
	line := c.run.Outline()
	next := 0 // of measured
	here := column(c.from)
	last := 0 // event of the recording that here is from
	ahead := func(event int) (at, col int) {
		for k := next; k < len(c.measured); k++ {
			if c.partner[k] >= 0 && c.measured[k] >= event {
				return c.measured[k], column(int(c.ledger.Tensors[c.planned[c.partner[k]]].Birth))
			}
		}
		return c.end, column(c.to)
	}
	to, col := ahead(0)
	for cur := line.Cursor(); cur.Next() && cur.Index < c.end; {
		for cur.Index >= to && to < c.end {
			here, last = col, to
			for next < len(c.measured) && c.measured[next] <= to {
				next++
			}
			to, col = ahead(to + 1)
		}
		at := here + (col-here)*(cur.Index-last)/max(to-last, 1)
		raise(out, min(max(at, 0), len(out)-1), cur.Totals.Requested)
	}
	for i := 1; i < len(out); i++ { // columns that no event fell into
		if out[i] == 0 {
			out[i] = out[i-1]
		}
	}
}
