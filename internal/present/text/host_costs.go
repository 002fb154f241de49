package text

import (
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/hostmem/costs"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// HostCosts writes what the mallocs of a machine cost.
func HostCosts(w io.Writer, d *costs.Document, style Style) error {
	p := &page{w: w, style: style}
	var measured []*costs.Malloc
	for i := range d.Mallocs {
		if m := &d.Mallocs[i]; m.Error == nil {
			measured = append(measured, m)
		} else {
			p.wrapped(fmt.Sprintf("%s: ", m.Variant), *m.Error)
		}
	}
	for _, m := range d.Missing {
		p.wrapped(m.Variant+": ", "left out: it needs "+m.Needs+installText(m))
	}
	if len(measured) == 0 {
		return p.err
	}
	p.costTable("What a request takes", "bytes of memory for one of many blocks; in brackets what malloc lets it use", measured, func(m *costs.Malloc, size uint64) string {
		for _, s := range m.Sizes {
			if s.Size != size {
				continue
			}
			cell := fmt.Sprintf("%.0f", s.Each)
			if u, ok := m.Usable(size); ok {
				cell += fmt.Sprintf(" (%d)", u)
			}
			return cell
		}
		return "-"
	})
	for _, threads := range threadsOf(measured[0]) {
		p.costTable("Time", fmt.Sprintf("ns for a malloc and a free, %s at once", plural(threads, "thread", "threads")), measured, func(m *costs.Malloc, size uint64) string {
			if ns, ok := m.NS(size, threads); ok {
				return fmt.Sprintf("%.0f", ns)
			}
			return "-"
		})
	}
	p.heading("Size classes", " up to 4 KiB, and what is kept for an idle thread")
	for _, m := range measured {
		n := 0
		for _, c := range m.Classes {
			if c.Usable <= 4096 {
				n++
			}
		}
		p.line("  %-12s %5d   %s", m.Variant, n, units.Size(*m.IdleThread))
	}
	return p.err
}

// threadsOf lists the numbers of threads that were timed.
func threadsOf(m *costs.Malloc) (all []int) {
	for _, t := range m.Times {
		if t.Size != m.Times[0].Size {
			break
		}
		all = append(all, t.Threads)
	}
	return all
}

// costTable writes a row for each size and a column for each malloc.
func (p *page) costTable(title, what string, measured []*costs.Malloc, cell func(*costs.Malloc, uint64) string) {
	p.heading(title, ": "+what)
	g := grid{left: 1, head: [][]string{{"size"}}}
	for _, m := range measured {
		g.head[0] = append(g.head[0], m.Variant)
	}
	for _, s := range measured[0].Sizes {
		row := []string{units.Size(s.Size)}
		for _, m := range measured {
			row = append(row, cell(m, s.Size))
		}
		g.rows = append(g.rows, row)
	}
	for _, l := range g.lines(p.columns()) {
		p.line("%s", l)
	}
}
