package text

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// readings says what each statistic means and whether it is a problem.
func (p *page) readings(all []stats.Reading) {
	if len(all) == 0 {
		return
	}
	p.heading("In words", "")
	marks := map[string]string{stats.ProblemNo: "fine", stats.ProblemMaybe: "look", stats.ProblemYes: "PROBLEM"}
	for _, r := range all {
		p.wrapped(fmt.Sprintf("  %-8s ", marks[r.Problem]), fmt.Sprintf("%s %s: %s; %s", r.Statistic, r.Value, r.Means, r.Why))
	}
}

// emptyCache says what empty_cache() would give back.
func (p *page) emptyCache(r *stats.Released, when string) {
	if r == nil {
		return
	}
	size := units.Size(r.Bytes)
	if r.UpperBound {
		size = "at most " + size
	}
	p.heading("empty_cache()", "")
	p.wrapped("  ", fmt.Sprintf("%s would give back %s: %s", when, size, r.Note))
}

// shownSteps is how many steps the text shows; JSON has all of them.
const shownSteps = 8

// traffic says how much was allocated and freed.
func (p *page) traffic(f *stats.Snapshot) {
	t := f.Traffic
	if t == nil || t.Allocations == 0 {
		return
	}
	width := len("before them")
	for _, s := range t.Streams {
		width = max(width, len("stream ")+len(Stream(s.Stream)))
	}
	p.heading("Turnover", fmt.Sprintf("%*s%11s %10s %10s %12s", width-len("Turnover")+3, "", "allocations", "frees", "bytes", "from cache"))
	row := func(name string, n *stats.Turnover) {
		p.line("  %-*s %11s %10s %10s %12s", width, name, countText(n.Allocations), countText(n.Frees), units.Size(n.AllocatedBytes), hitRate(n.HitRate))
	}
	row("all", &t.Turnover)
	for i, s := range t.Steps {
		if i == shownSteps && len(t.Steps) > shownSteps+1 {
			p.printf("  and %s more steps\n", countText(len(t.Steps)-i))
			break
		}
		name := "before them"
		if s.Step != nil {
			name = fmt.Sprintf("step %d", *s.Step)
		}
		row(name, &s.Turnover)
	}
	if len(t.Streams) > 1 {
		for i, s := range t.Streams {
			if i == shownSteps {
				p.printf("  and %s more streams\n", countText(len(t.Streams)-i))
				break
			}
			row("stream "+Stream(s.Stream), &s.Turnover)
		}
	}
}

// hitRate writes a rate that is often almost 1.
func hitRate(rate *float64) string {
	switch {
	case rate == nil:
		return "-"
	case *rate == 1:
		return "100 %"
	}
	return fmt.Sprintf("%.2f %%", 100**rate)
}
