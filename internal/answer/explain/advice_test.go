package explain_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

var (
	adviceTable = flag.String("table", "", "write what was advised in each labelled case to this file, as Markdown")
	blindFolder = flag.String("blind", "blind", "the folder of blind cases")
)

const adviceFolder = "../../../testdata/advice"

// labelled is a recorded mistake and what helped on the device.
type labelled struct {
	Name     string          `json:"name"`
	File     string          `json:"file"`
	Root     string          `json:"root"`
	Kept     []string        `json:"kept"`     // file:line of what a leak keeps
	Survives map[string]bool `json:"survives"` // by kind of fix, or by setting; without "memory" none was tried by record.py
	Unusable string          `json:"unusable"`
	LimitMiB uint64          `json:"limit_mib"`
}

// advice is what the judge reads of explain --json.
type advice struct {
	Cause string `json:"cause"`
	Line  *struct {
		Filename string `json:"filename"`
		Line     int    `json:"line"`
	} `json:"line"`
	Fixes []advisedFix `json:"fixes"`
}

type advisedFix struct {
	Kind     string `json:"kind"`
	Settings string `json:"settings"`
	// SmallestLimit is what more memory has to be.
	SmallestLimit uint64 `json:"smallest_limit_bytes"`
	Carries       *struct {
		Kind string `json:"kind"`
	} `json:"carries"`
}

// name is the fix as the truth has it.
func (f advisedFix) name() string {
	if f.Kind == explain.FixSetting {
		return f.Settings
	}
	return f.Kind
}

func (a *advice) line() string {
	if a.Line == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", path.Base(a.Line.Filename), a.Line.Line)
}

// share counts how often something was right.
type share struct{ right, all int }

func (s *share) count(right bool) {
	s.all++
	if right {
		s.right++
	}
}

func (s *share) percent() float64 {
	if s.all == 0 {
		return 100
	}
	return 100 * float64(s.right) / float64(s.all)
}

func (s *share) String() string { return fmt.Sprintf("%d of %d, %.0f %%", s.right, s.all, s.percent()) }

// adviceScore is what came of all cases.
type adviceScore struct {
	cause, line, first share
	broken             []string // fixes that should carry the run and die
	untried            []string // fixes named first that nobody tried on the device
	rows               strings.Builder
}

// judge compares the advice in a case with what is known of it.
func (s *adviceScore) judge(c labelled, a *advice) {
	s.cause.count(a.Cause == c.Root)
	line := ""
	if c.Root == explain.Leak {
		right := slices.Contains(c.Kept, a.line())
		s.line.count(right)
		line = yes(right) + " " + a.line()
	}
	first, lived := "", ""
	var dying []string
	if _, tried := c.Survives[explain.FixMemory]; tried && c.Root != explain.None {
		first, lived = s.judgeFirst(c, a.Fixes)
		for _, f := range a.Fixes {
			if f.Kind == explain.FixMemory && f.SmallestLimit > c.LimitMiB<<20*5/4 {
				continue // more than what was tried
			}
			if survives, tried := c.Survives[f.name()]; tried && !survives && f.Carries != nil && f.Carries.Kind == "steady" {
				dying = append(dying, f.name())
				s.broken = append(s.broken, c.Name+" "+f.name())
			}
		}
	}
	fmt.Fprintf(&s.rows, "| %s | %s | %s %s | %s | %s | %s | %s |\n", c.Name, c.Root, yes(a.Cause == c.Root), a.Cause, line, first, lived, strings.Join(dying, ", "))
}

// judgeFirst looks up the fix that is to be tried first. One that the script
// cannot apply counts as one that dies.
func (s *adviceScore) judgeFirst(c labelled, fixes []advisedFix) (first, lived string) {
	if len(fixes) == 0 {
		s.first.count(false)
		return "-", "no"
	}
	first = fixes[0].name()
	survives, tried := c.Survives[first]
	s.first.count(survives)
	if !tried {
		s.untried = append(s.untried, c.Name+" "+first)
		return first, "not tried"
	}
	return first, yes(survives)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// table is the score as Markdown.
func (s *adviceScore) table() string {
	head := "| case | cause | said | line | first fix | survives | should carry, but dies |\n|---|---|---|---|---|---|---|\n"
	return fmt.Sprintf("%s%s\ncause right in %v (bar: 95 %%); line of a leak in %v (90 %%); first fix survives in %v (90 %%); fixes that should carry the run and die: %s (none); tried first, unknown: %s\n",
		head, s.rows.String(), &s.cause, &s.line, &s.first, list(s.broken), list(s.untried))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func adviceOn(t *testing.T, file string) *advice {
	t.Helper()
	ctx := context.Background()
	in, err := input.Open(ctx, file, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := explain.NewCase(-1)
	if err := c.AddFile(ctx, in); err != nil {
		t.Fatal(err)
	}
	r, err := c.Explain(ctx)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(explain.NewDocument(c, r, true))
	if err != nil {
		t.Fatal(err)
	}
	a := &advice{}
	if err := json.Unmarshal(data, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// judgeAll judges the advice in all cases of a folder, and writes the table if
// one is asked for.
func judgeAll(t *testing.T, folder string) *adviceScore {
	t.Helper()
	s := &adviceScore{}
	for _, c := range jsonl.Must[labelled](t, filepath.Join(folder, "cases.jsonl")) {
		if c.Unusable == "" {
			s.judge(c, adviceOn(t, filepath.Join(folder, filepath.FromSlash(c.File))))
		}
	}
	if *adviceTable != "" {
		if err := os.WriteFile(*adviceTable, []byte(s.table()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Classic mistakes that were recorded on a GPU as they died, with the fixes that
// were tried there: testdata/advice/README.md.
func TestAdvice(t *testing.T) {
	short.Skip(t)
	s := judgeAll(t, adviceFolder)
	if s.cause.percent() < 95 || s.line.percent() < 90 || s.first.percent() < 90 || len(s.broken) > 0 {
		t.Errorf("the advice is below its bars:\n%s", s.table())
	}
}

// TestAdviceBlind measures the advice on cases that no rule was written for. It
// has no bars: a rule fitted to them would spoil the measurement.
func TestAdviceBlind(t *testing.T) {
	if *adviceTable == "" {
		t.Skip("only a measurement, for -table FILE")
	}
	judgeAll(t, adviceFolder+"/"+*blindFolder)
}

// What a program keeps although the backward pass released the graph is not told
// to detach; what is gone before the backward pass is computed in parts.
func TestKeptAndPassing(t *testing.T) {
	for file, want := range map[string]string{"timeline": "cpu", "lazy_log": "detach", "aerial_image": "chunked_loss"} {
		a := adviceOn(t, filepath.Join(adviceFolder, "blind2", file+".pickle.gz"))
		if len(a.Fixes) == 0 || a.Fixes[0].Kind != want {
			t.Errorf("%s: the first fix is %+v, not %s", file, a.Fixes, want)
		}
	}
}

// The judge tells right from wrong.
func TestAdviceJudge(t *testing.T) {
	leak := labelled{Name: "a", Root: explain.Leak, Kept: []string{"train.py:7"}, Survives: map[string]bool{"detach": true, "cpu": false, "memory": false, "expandable_segments:True": false}}
	read := func(text string) *advice {
		a := &advice{}
		if err := json.Unmarshal([]byte(text), a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	var s adviceScore
	s.judge(leak, read(`{"cause":"leak","line":{"filename":"/job/train.py","line":7},"fixes":[{"kind":"detach","carries":{"kind":"steady"}},{"kind":"cpu","carries":{"kind":"step"}}]}`))
	s.judge(labelled{Name: "b", Root: explain.None}, read(`{"cause":"none"}`))
	if want := (share{2, 2}); s.cause != want || s.line != (share{1, 1}) || s.first != (share{1, 1}) || len(s.broken)+len(s.untried) > 0 {
		t.Errorf("all right: %s", s.table())
	}
	s = adviceScore{}
	s.judge(leak, read(`{"cause":"fragmentation","line":{"filename":"train.py","line":8},"fixes":[{"kind":"setting","settings":"expandable_segments:True","carries":{"kind":"steady"}}]}`))
	s.judge(leak, read(`{"cause":"leak","line":null,"fixes":[{"kind":"optimizer"}]}`))
	s.judge(leak, read(`{"cause":"leak","line":null,"fixes":[]}`))
	if s.cause != (share{2, 3}) || s.line != (share{0, 3}) || s.first != (share{0, 3}) ||
		!slices.Equal(s.broken, []string{"a expandable_segments:True"}) || !slices.Equal(s.untried, []string{"a optimizer"}) {
		t.Errorf("all wrong: %s", s.table())
	}
}
