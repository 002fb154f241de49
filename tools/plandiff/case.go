package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// printCase prints a summary of each phase, then what differs.
func printCase(out *bufio.Writer, name string, o options) error {
	run, err := plancompare.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return printMeasured(out, name, err)
	}
	if err != nil {
		return err
	}
	var planned *ledger.Ledger
	if o.with != "" {
		other, err := plancompare.Open(o.with)
		if err != nil {
			return err
		}
		planned = other.Ledger
	} else if planned, err = execute(&run.Case); err != nil {
		return err
	}
	d := plancompare.Compare(planned, run)
	printSummary(out, d)
	printPeaks(out, d)
	p := printer{Diff: d, options: o, out: out}
	fmt.Fprintf(out, "\n- missing, + extra; a free that moved: < recorded here, > planned here\n")
	fmt.Fprintf(out, "  %-7s %-7s   %14s  %s | recorded: ops, frames; of a free (ops of the birth)\n", "plan", "rec", "bytes", sides("planned: op", "module"))
	for i := range d.Phases {
		if label := d.Phases[i].Label; o.phase == "" || label == o.phase || strings.TrimRight(label, "0123456789") == o.phase {
			p.phase(&d.Phases[i])
		}
	}
	if p.cut > 0 {
		fmt.Fprintf(out, "\n%s differing rows more; -limit 0 prints all, -phase and -min choose\n", units.Count(int64(p.cut)))
	}
	return nil
}

func printSummary(out *bufio.Writer, d *plancompare.Diff) {
	rec := d.Run.Ledger
	fmt.Fprintf(out, "%-12s %9s %9s %9s %9s %9s %9s  %8s  %11s %11s %10s\n",
		"phase", "recorded", "planned", "equal", "missing", "extra", "moved", ">=1 MiB", "recorded", "planned", "peak")
	for _, p := range d.Phases {
		var n [256]int
		for _, r := range p.Rows {
			n[r.Mark]++
		}
		large := plancompare.Within(d.Planned, rec, p.Planned, p.Recorded, plancompare.Large)
		rp, _ := plancompare.Peak(rec, p.Recorded.First, p.Recorded.Last)
		pp, _ := plancompare.Peak(d.Planned, p.Planned.First, p.Planned.Last)
		fmt.Fprintf(out, "%-12s %9d %9d %9d %9d %9d %9d  %7.2f%%  %11s %11s %10s\n", p.Label,
			p.Recorded.Last-p.Recorded.First, p.Planned.Last-p.Planned.First, n[plancompare.Equal], n[plancompare.Missing], n[plancompare.Extra],
			max(n[plancompare.MovedR], n[plancompare.MovedP]), 100*large.Share(), units.Size(uint64(rp)), units.Size(uint64(pp)), units.Delta(pp-rp))
	}
}

func printPeaks(out *bufio.Writer, d *plancompare.Diff) {
	f, err := d.Figures()
	fmt.Fprintf(out, "births covered: >= 1 MiB %.2f %% (step 3 %.2f %%), all %.2f %% (step 3 %.2f %%)\n",
		100*f.Large.Share(), 100*f.LargeScored.Share(), 100*f.All.Share(), 100*f.AllScored.Share())
	if err != nil {
		fmt.Fprintf(out, "the plan cannot be run through the engine: %v\n", err)
		return
	}
	printErrors(out, f.Planned, f.Measured)
}

func printErrors(out *bufio.Writer, planned, measured plancompare.Peaks) {
	for _, x := range []struct {
		what          string
		planned, real int64
	}{
		{"requested", planned.Requested, measured.Requested},
		{"allocated", planned.Allocated, measured.Allocated},
		{"reserved", planned.Reserved, measured.Reserved},
	} {
		fmt.Fprintf(out, "peak %-10s measured %11s  planned %11s  %+.3f %% (%s B)\n", x.what, units.Size(uint64(x.real)), units.Size(uint64(x.planned)),
			100*plancompare.Off(x.planned, x.real), units.Count(x.planned-x.real))
	}
}

// printMeasured prints a case of which only the peaks are known.
func printMeasured(out *bufio.Writer, name string, missing error) error {
	cases, err := plancompare.Measured()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(cases, func(c plancompare.Case) bool { return c.Name == name })
	if i < 0 {
		return missing
	}
	planned, err := execute(&cases[i])
	if err != nil {
		return err
	}
	got, err := plancompare.Through(planned)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-12s %9s %11s\n", "phase", "events", "peak")
	for _, s := range plancompare.Spans(planned) {
		bytes, _ := plancompare.Peak(planned, s.First, s.Last)
		fmt.Fprintf(out, "%-12s %9d %11s\n", s.Label, s.Last-s.First, units.Size(uint64(bytes)))
	}
	printErrors(out, got, cases[i].Peaks())
	return nil
}

type printer struct {
	*plancompare.Diff
	options
	out     *bufio.Writer
	printed int
	cut     int
}

// phase prints the differing regions of a phase with their context.
func (p *printer) phase(ph *plancompare.PhaseDiff) {
	var rows []plancompare.Row
	differs := false
	for _, r := range ph.Rows {
		if p.tensor(r).Bytes >= p.least {
			rows = append(rows, r)
			differs = differs || r.Mark != plancompare.Equal
		}
	}
	if !differs && !p.full {
		return
	}
	if p.limit == 0 || p.printed < p.limit {
		fmt.Fprintf(p.out, "\n=== %s\n", ph.Label)
	}
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r.Mark == plancompare.Equal && !p.full {
			continue
		}
		for j := max(0, i-p.context); j <= min(len(rows)-1, i+p.context); j++ {
			near[j] = true
		}
	}
	skipped := 0
	for i, r := range rows {
		if !near[i] {
			skipped++
			continue
		}
		if p.limit > 0 && p.printed >= p.limit {
			if r.Mark != plancompare.Equal {
				p.cut++
			}
			continue
		}
		if skipped > 0 {
			fmt.Fprintf(p.out, "  ... %d equal\n", skipped)
			skipped = 0
		}
		p.row(r)
		if r.Mark != plancompare.Equal {
			p.printed++
		}
	}
}

// tensor is what a row is about, the recorded one if there is a choice.
func (p *printer) tensor(r plancompare.Row) *ledger.Tensor {
	if r.Recorded >= 0 {
		e := p.Run.Ledger.Events[r.Recorded]
		return &p.Run.Ledger.Tensors[max(e, ^e)]
	}
	e := p.Planned.Events[r.Planned]
	return &p.Planned.Tensors[max(e, ^e)]
}

func (p *printer) row(r plancompare.Row) {
	var plan, rec, left, right string
	kind := "A"
	if r.Planned >= 0 {
		e := p.Planned.Events[r.Planned]
		t := &p.Planned.Tensors[max(e, ^e)]
		plan = fmt.Sprint("#", max(e, ^e))
		left = sides(p.Planned.Text(t.Op), p.Planned.Text(t.Module))
		if e < 0 {
			kind = "F"
		}
	}
	if r.Recorded >= 0 {
		l := p.Run.Ledger
		e := l.Events[r.Recorded]
		t := max(e, ^e)
		rec = fmt.Sprint("#", t+1) // as the script numbers them
		if e >= 0 {
			right = l.Text(l.Tensors[t].Op) + "  " + frames(l.Text(l.Tensors[t].Module))
		} else {
			kind = "F"
			// What dies says more than the op within which it dies.
			right = "(" + l.Text(l.Tensors[t].Op) + ")  " + l.Text(p.Run.FreedBy[t]) + " " + frames(l.Text(p.Run.FreedAt[t]))
		}
	}
	switch r.Mark {
	case plancompare.MovedP:
		right = p.elsewhere("recorded", p.Run.Ledger.Tensors[p.Back[^p.Planned.Events[r.Planned]]].Death, p.RowOfRecorded, p.PhaseOfRecorded, p.RowOfPlanned[r.Planned], p.PhaseOfPlanned[r.Planned])
	case plancompare.MovedR:
		left = p.elsewhere("planned", p.Planned.Tensors[p.Match[^p.Run.Ledger.Events[r.Recorded]]].Death, p.RowOfPlanned, p.PhaseOfPlanned, p.RowOfRecorded[r.Recorded], p.PhaseOfRecorded[r.Recorded])
	}
	mark := string(rune(r.Mark))
	if r.Mark == plancompare.Equal {
		mark = " "
	}
	fmt.Fprintf(p.out, "%s %-7s %-7s %s %14s  %-*s | %s\n", mark, plan, rec, kind, units.Count(p.tensor(r).Bytes), opWidth+1+moduleWidth, left, right)
}

// elsewhere says where the other side has a death.
func (p *printer) elsewhere(side string, death int32, rows []int32, phases []int16, here int32, phase int16) string {
	if death < 0 {
		return "never " + side
	}
	way, n := "later", rows[death]-here
	if n < 0 {
		way, n = "earlier", -n
	}
	if ph := phases[death]; ph != phase {
		return fmt.Sprintf("%s %d rows %s, in %s", side, n, way, p.Phases[ph].Label)
	}
	return fmt.Sprintf("%s %d rows %s", side, n, way)
}

// frames leaves out the frames of torch's module calls, which are everywhere.
func frames(s string) string {
	var out []string
	for _, f := range strings.Fields(s) {
		if !strings.HasSuffix(f, ":_call_impl") && !strings.HasSuffix(f, ":_wrapped_call_impl") {
			out = append(out, f)
		}
	}
	return strings.Join(out, " < ")
}

const opWidth, moduleWidth = 24, 36

// sides sets an op and a module in columns. Of a long module the end is kept,
// which says more than the beginning.
func sides(op, module string) string {
	if r := []rune(op); len(r) > opWidth {
		op = string(r[:opWidth-1]) + "…"
	}
	if r := []rune(module); len(r) > moduleWidth {
		module = "…" + string(r[len(r)-moduleWidth+1:])
	}
	return fmt.Sprintf("%-*s %-*s", opWidth, op, moduleWidth, module)
}
