package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/run"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Host writes a command under all variants: the figures, their curves, and what
// to use.
func Host(w io.Writer, title string, c *run.Comparison, style Style) error {
	p := &page{w: w, style: style}
	p.wrapped("", title)
	p.wrapped("  ", hostRuns(c))
	for _, n := range c.Notes {
		p.wrapped("  note: ", n)
	}
	p.hostTable(c)
	p.hostInside(c)
	p.hostBars(c)
	p.hostCourse(c)
	if !c.Interrupted && !c.Failed() && c.CommandFailed() == nil {
		p.hostAdvice(&c.Recommendation)
	}
	return p.err
}

func hostRuns(c *run.Comparison) string {
	text := fmt.Sprintf("%s, %s each", plural(len(c.Results), "variant", "variants"), plural(c.Repeat, "run", "runs"))
	if len(c.Results) > 1 && c.Repeat > 1 {
		text += ", interleaved"
	}
	if c.Interrupted {
		done := 0
		for _, r := range c.Results {
			done += r.Runs + r.Failed
		}
		return text + "; interrupted after " + plural(done, "run", "runs") + ": this is what is known"
	}
	if !c.Failed() && !slices.ContainsFunc(c.Results, func(r run.Result) bool { return !r.Verified }) {
		text += "; the malloc of every run was looked up in its process"
	}
	return text
}

// hostRow fits into 80 columns.
const hostRow = "  %-17s %5s %5s %11s %11s %11s %5s %6s"

func (p *page) hostTable(c *run.Comparison) {
	p.heading("What it holds", "")
	p.line(hostRow, "", "time", "CPU", "peak", "final", "retained", "of", "spread")
	p.line(hostRow, "", "in s", "in s", "", "", "", "glibc", "")
	atExit := false
	for i := range c.Results {
		r := &c.Results[i]
		if r.Runs > 0 {
			p.hostResult(r)
			atExit = atExit || *r.Final == run.FinalAtExit
		}
		switch {
		case r.Error != nil && r.Failed > 1:
			p.wrapped(fmt.Sprintf("  %-17s failed %s: ", r.Variant, plural(r.Failed, "time", "times")), *r.Error)
		case r.Error != nil:
			p.wrapped(fmt.Sprintf("  %-17s failed: ", r.Variant), *r.Error)
		case r.Runs == 0:
			p.line("  %-17s no run of it was finished", r.Variant)
		case !r.Verified:
			p.line("  %-17s ended too soon for its malloc to be looked up", "")
		}
		if r.ExitCode != nil && *r.ExitCode != 0 && r.Error == nil {
			p.line("  %-17s exit code %d", "", *r.ExitCode)
		}
	}
	for _, m := range c.Missing {
		p.wrapped(fmt.Sprintf("  %-17s ", m.Variant), "left out: it needs "+m.Needs+installText(m))
	}
	if !slices.ContainsFunc(c.Results, func(r run.Result) bool { return r.Runs > 0 }) {
		return
	}
	p.printf("\n")
	p.wrapped("  ", hostLegend(c, atExit))
}

func installText(m variant.Missing) string {
	if m.Install == "" {
		return ""
	}
	return "; " + m.Install
}

func (p *page) hostResult(r *run.Result) {
	retained, ratio, spread := "-", "-", "-"
	if r.Retained != nil {
		retained = units.Delta(*r.Retained)
	}
	if r.Ratio != nil {
		ratio = fmt.Sprintf("%.2f", *r.Ratio)
	}
	if s := r.Spread; s != nil {
		spread = hostSpread(s.FinalRSS, *r.FinalRSS)
	}
	p.line(hostRow, r.Variant, hostTime(*r.WallS), hostTime(*r.CPUS), units.Size(*r.PeakRSS), units.Size(*r.FinalRSS), retained, ratio, spread)
}

// hostSpread returns how far runs lie apart, in percent of their median.
func hostSpread(s run.Range[uint64], median uint64) string {
	percent := 100 * float64(s.High-s.Low) / float64(max(median, 1))
	if percent < 9.95 {
		return fmt.Sprintf("%.1f %%", percent)
	}
	return fmt.Sprintf("%.0f %%", percent)
}

func hostSeconds(s float64) string { return hostTime(s) + " s" }

// hostTime returns a number of seconds.
func hostTime(s float64) string {
	if s >= 99.995 {
		return fmt.Sprintf("%.0f", s)
	}
	return fmt.Sprintf("%.2f", s)
}

func hostLegend(c *run.Comparison, atExit bool) string {
	ready := slices.ContainsFunc(c.Results, func(r run.Result) bool { return r.Retained != nil })
	times, final := "Time is that of the load, CPU time that of the whole run", "the median while it was left alone"
	switch {
	case atExit && ready:
		times, final = "Time is that of the work after it was ready, CPU time that of the whole run", "what it held when the work was done"
	case atExit:
		times, final = "Times are those of the whole run", "the median of the last tenth of that, until a process went"
	}
	text := times + ". Memory is RSS, summed over all processes of the command. Final is " + final
	if ready {
		text += "; retained is final less what it held when it was ready"
	}
	return text + ". Figures are medians over the runs; the spread is how far apart the least and the most final memory are, of the median."
}

// hostInside says what malloc tells of itself.
func (p *page) hostInside(c *run.Comparison) {
	if !slices.ContainsFunc(c.Results, func(r run.Result) bool { return r.InUse != nil }) {
		return
	}
	p.heading("Inside malloc", "           in use       held  fragmentation")
	for _, r := range c.Results {
		if r.InUse == nil {
			p.line("  %-17s it does not tell", r.Variant)
			continue
		}
		p.line("  %-17s %10s %10s %14s", r.Variant, units.Size(*r.InUse), units.Size(*r.MallocHeld), percentText(r.Fragmentation))
	}
	p.wrapped("  ", "In use is what the program has not freed, held what malloc has for it, both as malloc counts. Fragmentation is the part that is not in use of what is held, or of the final memory if that is less: glibc counts pages that it has given back.")
}

// hostBars draws final and peak of each variant.
func (p *page) hostBars(c *run.Comparison) {
	columns := uint64(p.style.ChartColumns() - 7)
	var most uint64
	for _, r := range c.Results {
		if r.Runs > 0 {
			most = max(most, *r.PeakRSS)
		}
	}
	if most == 0 {
		return
	}
	p.heading("Final and peak", "")
	for _, r := range c.Results {
		if r.Runs == 0 {
			continue
		}
		final := int((*r.FinalRSS*columns + most/2) / most)
		peak := int((*r.PeakRSS*columns + most/2) / most)
		p.line("  %-17s %s%s", r.Variant, strings.Repeat("#", final), strings.Repeat(".", max(0, peak-final)))
	}
	p.line("  %-17s # final   . up to the peak of %s", "", units.Size(most))
}

// hostCourse draws the baseline and the best of the others over time.
func (p *page) hostCourse(c *run.Comparison) {
	base, other := hostPair(c)
	if base == nil || other == nil {
		return
	}
	length := max(base.Points[len(base.Points)-1].At, other.Points[len(other.Points)-1].At)
	if length <= 0 {
		return
	}
	columns := p.style.ChartColumns()
	p.heading("Over time", fmt.Sprintf(": %s beside %s, a typical run of each", base.Variant, other.Variant))
	p.chart(chart{
		a: hostColumns(base, length, columns), b: hostColumns(other, length, columns), both: '#', onlyA: '.', onlyB: '+',
		phases: hostPhases(base, length, columns),
		legend: fmt.Sprintf("# both   . only %s   + only %s   (%s in all)", base.Variant, other.Variant, hostSeconds(length.Seconds())),
	})
}

// hostPair finds the runs to draw: the baseline's, and that of the recommended
// variant or of the one that holds least.
func hostPair(c *run.Comparison) (base, other *run.Run) {
	var best *run.Result
	for i := range c.Results {
		r := &c.Results[i]
		switch {
		case r.Runs == 0:
		case r.Variant == variant.Baseline:
			base = r.Typical()
		case r.Variant == c.Recommendation.Variant:
			return base, r.Typical()
		case best == nil || *r.FinalRSS < *best.FinalRSS:
			best = r
		}
	}
	if best == nil {
		return base, nil
	}
	return base, best.Typical()
}

// hostColumns returns the memory of a run in n columns of equal time: the most in
// each, and where there is no sample what there was before. After its end it is
// 0.
func hostColumns(r *run.Run, length time.Duration, n int) []uint64 {
	columns := make([]uint64, n)
	last := 0
	for _, p := range r.Points {
		column := hostColumn(p.At, length, n)
		for i := last + 1; i < column; i++ {
			columns[i] = columns[last]
		}
		columns[column] = max(columns[column], p.RSSBytes)
		last = column
	}
	return columns
}

func hostColumn(at, length time.Duration, n int) int {
	return min(int(int64(at)*int64(n)/int64(length)), n-1)
}

// hostPhases places the phases below the chart.
func hostPhases(r *run.Run, length time.Duration, n int) []plan.Span {
	var spans []plan.Span
	for _, p := range r.Points {
		column := hostColumn(p.At, length, n)
		if last := len(spans) - 1; last >= 0 && spans[last].Name == string(p.Phase) {
			spans[last].End = column + 1
			continue
		} else if last >= 0 {
			spans[last].End = column
		}
		spans = append(spans, plan.Span{Name: string(p.Phase), Begin: column, End: column + 1})
	}
	return spans
}

func (p *page) hostAdvice(a *run.Recommendation) {
	p.heading("Recommended", "")
	p.printf("%s\n", a.Variant)
	p.wrapped("  ", a.Reason+".")
	if a.Cost != "" {
		p.wrapped("  it costs: ", a.Cost+".")
	}
	for _, l := range []struct {
		where string
		lines []string
	}{{"shell", a.Lines.Shell}, {"Dockerfile", a.Lines.Dockerfile}, {"systemd, in [Service]", a.Lines.Systemd}} {
		if len(l.lines) == 0 {
			continue
		}
		p.printf("\n  %s\n", l.where)
		for _, line := range l.lines {
			p.line("    %s", line)
		}
	}
}
