package text

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/fleet"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// shownSkipped is how many things that were left out of folders are named.
const shownSkipped = 10

// FleetAdded writes what became of files that were added. Why some were refused
// is an error, and not part of it.
func FleetAdded(w io.Writer, a *fleet.Added, style Style) error {
	p := &page{w: w, style: style}
	n := func(n int) string { return units.Count(int64(n)) }
	p.line("%s added, %s known already, %s refused, %s skipped", n(a.Added), n(a.Known), n(len(a.Refused)), n(len(a.Skipped)))
	for i, s := range a.Skipped {
		if i == shownSkipped {
			p.line("skipped: %s more, which --json lists", n(len(a.Skipped)-i))
			break
		}
		p.wrapped("skipped: ", Clean(s.File)+": "+Clean(s.Error))
	}
	for _, n := range a.Notes {
		p.wrapped("note: ", Clean(n))
	}
	return p.err
}

// FleetStatus writes how the fleet is.
func FleetStatus(w io.Writer, s *fleet.Status, style Style) error {
	p := &page{w: w, style: style}
	n := func(n int) string { return units.Count(int64(n)) }
	head := plural(s.Files, "file", "files") + ", " + n(s.Analysed) + " analysed"
	if s.Failed > 0 {
		head += ", " + n(s.Failed) + " failed or set aside"
	}
	p.line("%s", style.bold(head))
	if s.Damaged > 0 {
		p.line("damaged   %s", damagedEntries(s.Damaged))
	}
	if s.Outdated > 0 {
		p.line("%s have answers of an earlier version: ashlar fleet redo renews them", n(s.Outdated))
	}
	p.line("queue     %s waiting, %s being analysed, %s done in the last minute", n(s.Waiting), n(s.Taken), n(s.PerMinute))
	p.line("disk      %s, of which files %s", units.Size(uint64(s.Disk)), units.Size(uint64(s.Bytes)))
	if len(s.Workers) == 0 {
		p.line("workers   none: start ashlar fleet serve, or ashlar fleet work")
	}
	for i, wk := range s.Workers {
		label := "workers   "
		if i > 0 {
			label = "          "
		}
		p.line("%s%s, process %d: %d of %d busy", label, Clean(wk.Host), wk.PID, wk.Doing, wk.Jobs)
	}
	for _, x := range s.Problems {
		label := "failed    "
		if x.Aside {
			label = "set aside "
		}
		p.wrapped(label, Clean(x.File)+" ("+x.Hash[:min(12, len(x.Hash))]+"): "+Clean(x.Error))
	}
	return p.err
}

// damagedEntries says what becomes of what cannot be read.
func damagedEntries(n int) string {
	return plural(n, "entry", "entries") + " of the store cannot be read: what has lost its answers is analysed again; add files again that ashlar fleet query does not show"
}

// FleetChecked writes what a check found.
func FleetChecked(w io.Writer, c *fleet.Checked, style Style) error {
	p := &page{w: w, style: style}
	p.line("%s and %s read again, %s hashed: %d wrong", plural(c.Files, "file", "files"), plural(c.Results, "answer", "answers"), units.Size(uint64(c.Bytes)), len(c.Wrong))
	if c.Waiting > 0 {
		p.line("waiting: %s to be analysed: ashlar fleet serve or ashlar fleet work does it", plural(c.Waiting, "file", "files"))
	}
	if c.Damaged > 0 {
		p.wrapped("damaged: ", damagedEntries(c.Damaged))
	}
	for _, x := range c.Wrong {
		p.wrapped("wrong: ", Clean(x.File)+" ("+x.Hash[:min(12, len(x.Hash))]+"): "+Clean(x.Error))
	}
	return p.err
}

// FleetQuery writes a table of files.
func FleetQuery(w io.Writer, d *answers.QueryDocument, style Style) error {
	p := &page{w: w, style: style}
	g := &grid{left: 1, head: [][]string{nil}}
	for _, c := range d.Columns {
		g.head[0] = append(g.head[0], c.Name)
	}
	for i := range d.Rows.Len() {
		row := make([]string, len(d.Columns))
		for j, v := range d.Rows.Row(i) {
			row[j] = fleetCell(d.Columns[j].Kind, v)
		}
		g.rows = append(g.rows, row)
	}
	for i, line := range g.lines(style.columns()) {
		if i == 0 {
			line = style.bold(line)
		}
		p.line("%s", line)
	}
	p.line("%s, %s of %s", plural(d.Matched, "file", "files"), units.Count(int64(d.Rows.Len())), plural(d.Total, "row", "rows"))
	for _, n := range d.Notes {
		p.wrapped("note: ", Clean(n))
	}
	return p.err
}

func fleetCell(kind answers.Kind, v answers.Value) string {
	switch {
	case !v.Known:
		return "-"
	case kind == answers.Text:
		return Clean(v.Text)
	case kind == answers.Bytes:
		return units.Size(uint64(v.N))
	case kind == answers.Time:
		return day(v.N)
	case kind == answers.Duration:
		return ageText(v.N)
	case kind == answers.Bool && v.N != 0:
		return "yes"
	case kind == answers.Bool:
		return "no"
	}
	return units.Count(v.N)
}

// ageText writes a duration in the units of --where, the two largest of it.
func ageText(us int64) string {
	if us < 0 {
		return "-" + ageText(-us)
	}
	s := us / 1e6
	switch {
	case s >= 86400:
		return fmt.Sprintf("%dd %dh", s/86400, s%86400/3600)
	case s >= 3600:
		return fmt.Sprintf("%dh %dm", s/3600, s%3600/60)
	case s >= 60:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}

// FleetRanks writes the odd ranks of a run.
func FleetRanks(w io.Writer, d *answers.RanksDocument, style Style) error {
	p := &page{w: w, style: style}
	p.line("%s", style.bold(Clean(d.Run)+": "+plural(len(d.Launches), "launch", "launches")))
	for i := range d.Launches {
		l := &d.Launches[i]
		p.line("commit %s, attempt %s: %s, %d failed", shortCommit(l.Commit), optional(l.Attempt), plural(len(l.All), "rank", "ranks"), l.Failed)
	}
	if len(d.Odd) == 0 {
		p.line("no rank is odd")
	}
	for _, o := range d.Odd {
		delta := "-"
		if o.DeltaBytes != nil {
			delta = units.Delta(*o.DeltaBytes)
		} else if o.DeltaCount != nil {
			delta = fmt.Sprintf("%+d", *o.DeltaCount)
		}
		if o.Fraction != nil {
			delta += fmt.Sprintf(" (%+.1f %%)", 100**o.Fraction)
		}
		p.line("rank %s is odd: %s %s beside the median; commit %s, attempt %s, %s", optional(o.Rank), o.Measure, delta, shortCommit(o.Commit), optional(o.Attempt), Clean(o.File))
	}
	return p.err
}

// FleetGrowth writes the peaks of runs by commit.
func FleetGrowth(w io.Writer, d *answers.GrowthDocument, style Style) error {
	p := &page{w: w, style: style}
	if len(d.Runs) == 0 {
		p.line("no file names its run and commit: add files with --run and --commit")
	}
	for i := range d.Runs {
		r := &d.Runs[i]
		p.line("%s", style.bold(Clean(r.Run)))
		g := &grid{left: 1, head: [][]string{{"commit", "first seen", "ranks", "peak allocated", "peak reserved", "grew by"}}}
		for _, c := range r.Commits {
			grew := "-"
			if c.Grew && c.Delta != nil {
				grew = units.Delta(*c.Delta)
			}
			g.rows = append(g.rows, []string{shortCommit(&c.Commit), day(c.FirstSeenUS), units.Count(int64(c.Ranks)), optionalSize(c.PeakAllocated), optionalSize(c.PeakReserved), grew})
		}
		for _, line := range g.lines(style.columns()) {
			p.line("%s", line)
		}
		for j := range r.Commits {
			p.grown(&r.Commits[j])
		}
	}
	return p.err
}

// grown names the stacks by which a commit grew.
func (p *page) grown(c *answers.CommitGrowth) {
	if !c.Grew {
		return
	}
	p.line("%s grew:", shortCommit(&c.Commit))
	for _, s := range c.Stacks[:min(len(c.Stacks), shortStacks)] {
		where := "memory without a call stack"
		if at, ok := timeline.SiteOfFrames(s.Frames); ok {
			where = at.String()
		}
		p.wrapped("  ", fmt.Sprintf("%s  %s", units.Delta(s.Delta), Clean(where)))
	}
	for _, n := range c.Notes {
		p.wrapped("  note: ", Clean(n))
	}
}

// causeRoles are what the frames of a cause are called.
var causeRoles = map[answers.Role]string{
	answers.Requested: "  request: ", answers.Held: "  holder: ", answers.HeldThrough: "  holder called from: ",
}

// FleetCauses writes the causes of failures.
func FleetCauses(w io.Writer, d *answers.CausesDocument, style Style) error {
	p := &page{w: w, style: style}
	if len(d.Causes) == 0 {
		p.line("no file has a failed request")
	}
	for _, c := range d.Causes {
		p.line("%s", style.bold(fmt.Sprintf("%s: %s, %s, %s, %s, %s to %s", c.Verdict, plural(c.Files, "file", "files"), plural(c.Runs, "run", "runs"),
			plural(c.Ranks, "rank", "ranks"), plural(c.Commits, "commit", "commits"), day(c.FirstUS), day(c.LastUS))))
		if len(c.Frames) == 0 {
			p.line("  no call stack")
		}
		for i, f := range c.Frames {
			label := "  at "
			if i < len(c.Roles) {
				label = causeRoles[c.Roles[i]]
			}
			p.wrapped(label, Clean(f.String()))
		}
		p.wrapped("  example: ", Clean(c.Example))
		if c.Fix != nil {
			p.wrapped("  fix: ", fmt.Sprintf("%s (passes in %d of %d)", fleetFix(c.Fix), c.Fix.Passes, c.Fix.Of))
		}
	}
	for _, n := range d.Notes {
		p.wrapped("note: ", Clean(n))
	}
	return p.err
}

// fixWords say what the kinds of fixes are.
var fixWords = map[string]string{
	explain.FixCode: "allocate less there", explain.FixDetach: "keep numbers, not the graph: detach() or item()",
	explain.FixNoGrad: "evaluate under torch.no_grad()", explain.FixDel: "drop tensors earlier: del", explain.FixCPU: "keep tensors on the host: cpu()",
	explain.FixCheckpoint: "gradient checkpointing", explain.FixChunk: "the loss in parts", explain.FixMicroBatch: "smaller batches, more of them",
	explain.FixOptimizer: "an optimizer with less state", explain.FixHalf: "half precision", explain.FixShape: "mend the shape of the request",
	explain.FixEmptyCache: "torch.cuda.empty_cache()", explain.FixOthers: "end other users of the GPU", explain.FixOverflow: "overflow into the host's memory",
	explain.FixMemory: "a higher limit, or a larger GPU",
}

func fleetFix(f *answers.CauseFix) string {
	if f.Settings != "" {
		return Clean(f.Settings)
	}
	if words := fixWords[f.Kind]; words != "" {
		return words
	}
	return Clean(f.Kind)
}

// FleetTune writes settings for all ranks of a run.
func FleetTune(w io.Writer, d *answers.TuneDocument, style Style) error {
	p := &page{w: w, style: style}
	p.line("%s", style.bold(fmt.Sprintf("%s: %s, commit %s, attempt %s, goal %s", Clean(d.Run), plural(d.Ranks, "rank", "ranks"), shortCommit(d.Commit), optional(d.Attempt), d.Goal)))
	show := func(label string, c *answers.RunChoice) {
		value := "fails"
		switch {
		case c.Value != nil && d.Goal == tune.FewestCalls:
			value = units.Count(int64(*c.Value)) + " calls"
		case c.Value != nil:
			value = units.Size(*c.Value)
		}
		settings := c.Settings
		if settings == "" {
			settings = "PyTorch's defaults"
		}
		p.wrapped(label, fmt.Sprintf("%s: %s on rank %s (%s)", settings, value, optional(c.WorstRank), Clean(c.WorstFile)))
	}
	show("best      ", d.Recommended)
	if d.Recommended.Export != "" && !d.Recommended.Recorded {
		p.line("          %s", d.Recommended.Export)
	}
	if d.Current != nil {
		show("recorded  ", d.Current)
	}
	for i := range d.Others {
		show("also      ", &d.Others[i])
	}
	for _, n := range d.Notes {
		p.wrapped("note: ", Clean(n))
	}
	return p.err
}

func shortCommit(c *string) string {
	if c == nil || *c == "" {
		return "-"
	}
	return Clean((*c)[:min(len(*c), 12)])
}

func optional(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func optionalSize(n *uint64) string {
	if n == nil {
		return "-"
	}
	return units.Size(*n)
}

func day(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04") }
