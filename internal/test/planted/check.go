package planted

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// Answers are what the questions say about a fleet.
type Answers struct {
	Growth *answers.GrowthDocument
	Ranks  []*answers.RanksDocument // of all runs
	Causes *answers.CausesDocument
}

// Runs lists the runs of a fleet.
func (t *Truth) Runs() []string {
	var out []string
	for _, f := range t.Files {
		if !slices.Contains(out, f.Run) {
			out = append(out, f.Run)
		}
	}
	return out
}

// Check compares answers with the truth, and says what is wrong with them: every
// planted commit and rank is to be named and no other, and the failures of a cause
// are to be together.
func (t *Truth) Check(a *Answers) []string {
	var odd, planted []string
	for _, ranks := range a.Ranks {
		for _, o := range ranks.Odd {
			odd = append(odd, fmt.Sprintf("rank %d of %s at %s is odd", *o.Rank, ranks.Run, *o.Commit))
		}
	}
	for _, o := range t.Odd {
		planted = append(planted, fmt.Sprintf("rank %d of %s at %s is odd", o.Rank, o.Run, o.Commit))
	}
	return slices.Concat(t.checkGrowth(a.Growth), differences(odd, planted), t.checkCauses(a.Causes))
}

func (t *Truth) checkGrowth(growth *answers.GrowthDocument) (wrong []string) {
	var named, planted []string
	stacks := map[string][]diff.Stack{}
	for _, run := range growth.Runs {
		for _, c := range run.Commits {
			if c.Grew {
				what := fmt.Sprintf("%s grew at %s", run.Run, c.Commit)
				named = append(named, what)
				stacks[what] = c.Stacks
			}
		}
	}
	for _, g := range t.Grown {
		what := fmt.Sprintf("%s grew at %s", g.Run, g.Commit)
		planted = append(planted, what)
		found := slices.ContainsFunc(stacks[what], func(s diff.Stack) bool {
			return slices.ContainsFunc(s.Frames, func(f timeline.Frame) bool { return f.Name == g.Function && path.Base(f.Filename) == g.File })
		})
		if !found {
			wrong = append(wrong, fmt.Sprintf("%s by %.1f %% in %s of %s, which is not among its stacks", what, 100*g.Share, g.Function, g.File))
		}
	}
	return append(wrong, differences(named, planted)...)
}

func (t *Truth) checkCauses(found *answers.CausesDocument) (wrong []string) {
	for _, files := range t.Causes {
		i := slices.IndexFunc(found.Causes, func(c answers.Cause) bool {
			return slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(c.Example, f) })
		})
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Sprintf("%d failures like %s are no cause", len(files), files[0]))
		case found.Causes[i].Files != len(files):
			wrong = append(wrong, fmt.Sprintf("%d failures like %s are one of %d files", len(files), files[0], found.Causes[i].Files))
		}
	}
	if len(found.Causes) != len(t.Causes) {
		wrong = append(wrong, fmt.Sprintf("%d causes, planted are %d", len(found.Causes), len(t.Causes)))
	}
	return wrong
}

// differences compares two sets of statements.
func differences(got, want []string) (wrong []string) {
	slices.Sort(got)
	slices.Sort(want)
	for _, g := range slices.Compact(got) {
		if !slices.Contains(want, g) {
			wrong = append(wrong, g+": that was not planted")
		}
	}
	for _, w := range slices.Compact(want) {
		if !slices.Contains(got, w) {
			wrong = append(wrong, w+": that is missing")
		}
	}
	return wrong
}
