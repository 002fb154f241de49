package answers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/run"
)

// GrowthDocument is what ashlar fleet growth --json prints.
type GrowthDocument struct {
	Runs []RunGrowth `json:"runs"` // by name
}

// RunGrowth is how the memory of a run went from commit to commit.
type RunGrowth struct {
	Run     string         `json:"run"`
	Commits []CommitGrowth `json:"commits"` // in order of their first appearance
}

// CommitGrowth is a commit of a run.
type CommitGrowth struct {
	Commit      string `json:"commit"`
	FirstSeenUS int64  `json:"first_seen_us"`
	Ranks       int    `json:"ranks"`
	Failed      int    `json:"failed"` // ranks with a request that failed
	// The peaks are those of the worst rank.
	PeakAllocated *uint64 `json:"peak_allocated_bytes"`
	PeakReserved  *uint64 `json:"peak_reserved_bytes"`
	// Grew reports whether the commit is beyond the one before by more than ranks
	// and commits scatter; Delta is by how much the worst rank that is not odd
	// is, nil for the first commit.
	Grew  bool   `json:"grew"`
	Delta *int64 `json:"delta_bytes"`
	// Than is the commit that it is compared with: the last one before it with a
	// rank that did not fail, if all failed so far the last one; nil for the first.
	Than *string `json:"than"`
	// Measure says which peak Delta is of.
	Measure *string `json:"measure"`
	// Stacks are those that grew, the largest difference first; only of a commit
	// that grew.
	Stacks []diff.Stack `json:"stacks"`
	Notes  []string     `json:"notes"`
}

const (
	// minPaired is how many ranks two commits must share to be compared rank by
	// rank.
	minPaired = 3
	// minDeltas is how many differences between neighbours show how commits
	// scatter. Of few ones the commits that grew are too large a part.
	minDeltas = 8
	// maxStacks is how many stacks of a commit are listed.
	maxStacks = 10
)

// Growth finds the commits at which the memory of a run grew; of all runs if run
// is empty. It opens two files for each of them.
func Growth(ctx context.Context, entries []Entry, run string) (*GrowthDocument, error) {
	out := &GrowthDocument{Runs: []RunGrowth{}}
	all := ordered(entries, func(e *Entry) bool {
		return e.Run != "" && (run == "" || e.Run == run) && e.Commit != "" && e.Summary.PeakReserved != nil
	})
	if len(all) == 0 && run != "" {
		if slices.ContainsFunc(entries, func(e Entry) bool { return e.Run == run }) {
			return nil, fmt.Errorf("no file of run %q names its commit: add files with --commit, or have the recorder write it", run)
		}
		return nil, noRun(entries, run)
	}
	runs := grouped(all, func(e *Entry) string { return e.Run })
	slices.SortFunc(runs, func(a, b []*Entry) int { return cmp.Compare(a[0].Run, b[0].Run) })
	for _, of := range runs {
		g, err := runGrowth(ctx, of)
		if err != nil {
			return nil, err
		}
		out.Runs = append(out.Runs, *g)
	}
	return out, nil
}

// runGrowth follows one run.
func runGrowth(ctx context.Context, all []*Entry) (*RunGrowth, error) {
	out := &RunGrowth{Run: all[0].Run}
	var steps []*growthStep
	var whole, failed *commitPeaks // the last ones
	for _, of := range grouped(all, func(e *Entry) string { return e.Commit }) {
		now, before := newCommitPeaks(of), whole
		if now.bounds && whole == nil {
			before = failed // like with like
		}
		steps = append(steps, compareCommits(before, now))
		if now.bounds {
			failed = now
		} else {
			whole = now
		}
	}
	scatter := commitScatter(steps)
	for _, s := range steps {
		c := s.judge(scatter)
		if c.Grew {
			g := s.chosen(scatter)
			if err := c.findStacks(ctx, g.a, g.b, s.now.bounds); err != nil {
				return nil, err
			}
		}
		out.Commits = append(out.Commits, *c)
	}
	return out, nil
}

// findStacks compares a rank at two commits by call stack. A file that is gone is
// noted; it does not undo the answer. But what failed may be another program of
// the run, such as an evaluation: that did not grow.
func (c *CommitGrowth) findStacks(ctx context.Context, a, b *Entry, failed bool) error {
	d, err := compareFiles(ctx, a, b)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		c.Grew = !failed // nobody knows what failed
		c.Notes = append(c.Notes, fmt.Sprintf("the stacks that grew are not known: %v", err))
		return nil
	case failed && !sameProgram(d):
		c.Grew = false
		c.Notes = append(c.Notes, "what failed has other call stacks than the commit before: it is not compared")
		return nil
	}
	for _, stack := range d.Stacks {
		if stack.Delta > 0 && len(c.Stacks) < maxStacks {
			c.Stacks = append(c.Stacks, stack)
		}
	}
	return nil
}

// compareFiles compares two files as ashlar diff does.
func compareFiles(ctx context.Context, a, b *Entry) (*diff.Diff, error) {
	table := diff.NewTable()
	var sides [2][]*diff.Side
	for i, e := range []*Entry{a, b} {
		var err error
		if sides[i], err = sidesOf(ctx, table, e); err != nil {
			return nil, err
		}
	}
	return table.CompareFirst(sides[0], sides[1]), nil
}

// sameProgram reports whether most of the memory of the first side is held by
// stacks that the second one has, too.
func sameProgram(d *diff.Diff) bool {
	var both uint64
	for _, s := range d.Stacks {
		if s.Matched != nil && len(s.Frames) > 0 {
			both += s.ABytes
		}
	}
	return both > d.ABytes/2
}

// sidesOf opens the file of an entry and looks at its peak and its end.
func sidesOf(ctx context.Context, table *diff.Table, e *Entry) ([]*diff.Side, error) {
	in, err := e.Source.Open(ctx, e.Hash)
	if err != nil {
		return nil, err
	}
	if in.Kind != input.Snapshot {
		return nil, fmt.Errorf("%s has no blocks to compare: it is %s", e.File, in.Kind.Words())
	}
	t, why, err := input.Pick(in.Snapshot, input.AnyDevice)
	if err != nil {
		return nil, err
	}
	return table.Sides(ctx, diff.Source{File: e.File, Run: run.New(t, nil), Reason: why}, diff.Moments(t))
}
