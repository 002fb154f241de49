package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The scripts in testdata/alarms have three parts, which lines of --- separate:
// alarms; a history; the alarms that are raised and cleared. A line of the history
// has a time or a range of them, in seconds from the beginning, and values, which
// go from a to b over the range if they are written a..b:
//
//	0..60 rank=1 step=0..120 allocated=1GiB..2GiB
//
// silence before the last time of all is seen second by second. A line of the
// answer is: time, + or -, the alarm, the rank.
func TestAlarmScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/alarms/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(string(text), "---\n")
			if len(parts) != 3 {
				t.Fatalf("%d parts", len(parts))
			}
			rules, err := ParseRules(parts[0])
			if err != nil {
				t.Fatal(err)
			}
			if got := playHistory(t, rules, parts[1]); got != parts[2] {
				t.Errorf("got\n%swant\n%s", got, parts[2])
			}
		})
	}
}

// event is a line of a history at one time.
type event struct {
	at  float64
	run string
	row Row
}

func playHistory(t *testing.T, rules []*Rule, text string) string {
	t.Helper()
	var events []event
	for line := range strings.Lines(text) {
		events = append(events, parseHistory(t, strings.TrimSpace(line))...)
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(1000 * (a.at - b.at)) })
	e, begin := newEngine(rules), time.Unix(1_800_000_000, 0)
	var out strings.Builder
	second := 0.0
	tell := func(changes []change) {
		for _, c := range changes {
			sign := "-"
			if c.raised {
				sign = "+"
			}
			fmt.Fprintf(&out, "%g %s %s %s\n", c.at.Sub(begin).Seconds(), sign, c.rule.Name, c.who.session)
		}
	}
	when := func(s float64) time.Time { return begin.Add(time.Duration(s * 1e9)) }
	for _, ev := range events {
		for ; second < ev.at; second++ {
			tell(e.tick(when(second)))
		}
		rank := strconv.FormatInt(ev.row.V[Seq], 10)
		ev.row.V[Time] = when(ev.at).UnixMicro()
		if ev.row.V[Step] == -2 { // nothing but the time passes
			continue
		}
		tell(e.sample(who{rank, ev.row.GPU}, ev.run, ev.row, when(ev.at)))
	}
	return out.String()
}

// parseHistory reads one line. The rank is kept as seq; the step of a line
// without values is -2.
func parseHistory(t *testing.T, line string) (events []event) {
	t.Helper()
	fields := strings.Fields(line)
	from, to := bounds(t, fields[0])
	for at := from; at <= to; at++ {
		ev := event{at, "job", Row{}}
		for i := range ev.row.V {
			ev.row.V[i] = unknown
		}
		ev.row.V[Seq] = 0
		if len(fields) == 1 {
			ev.row.V[Step] = -2
		}
		for _, f := range fields[1:] {
			name, value, _ := strings.Cut(f, "=")
			if name == "run" {
				ev.run = value
				continue
			}
			a, b := bounds(t, value)
			v := a
			if to > from {
				v += (b - a) * (at - from) / (to - from)
			}
			i := slices.Index(Names[:], name)
			switch {
			case name == "rank":
				i = Seq
			case name == "gpu":
				ev.row.GPU = int(v)
				continue
			case i < 0:
				t.Fatalf("%q in %q", name, line)
			}
			ev.row.V[i] = int64(v)
		}
		events = append(events, ev)
	}
	return events
}

func bounds(t *testing.T, text string) (from, to float64) {
	t.Helper()
	a, b, ranged := strings.Cut(text, "..")
	value := func(s string) float64 {
		p := &parser{text: s}
		return p.number()
	}
	from = value(a)
	if to = from; ranged {
		to = value(b)
	}
	return from, to
}

func TestWrongRules(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"frag", "line 1, column 5: : is missing after the name: the line ends here"},
		{"\n# a comment\nfrag: reservd > 3 -> log", `line 3, column 7: "reservd" is no number of a sample (did you mean reserved?)`},
		{"a: reserved -> log", `line 1, column 13: > or < is missing after the expression: found "-> log"`},
		{"a: reserved > -> log", `line 1, column 15: "-" is no value`},
		{"a: reserved > 3GB3 -> log", `line 1, column 15: "3GB3" is no value`},
		{"a: reserved > 3 clear 4 -> log", "line 1, column 23: an alarm that is raised at 3 cannot be cleared at 4"},
		{"a: reserved > 3 for 30 -> log", "line 1, column 24: steps is missing"},
		{"a: reserved > 3 for ever -> log", `line 1, column 21: "ever" is no time`},
		{"a: reserved > 3 per node -> log", "line 1, column 21: per node is unknown"},
		{"a: reserved > 3 per run per run -> log", "line 1, column 25: per is given twice"},
		{"a: reserved > 3 claer 2 -> log", `line 1, column 17: "claer" is unknown: write clear, for, per or ->`},
		{"a: reserved > 3", "line 1, column 16: -> is missing before the actions: the line ends here"},
		{"a: reserved > 3 -> mail", `line 1, column 20: "mail" is no action`},
		{"a: reserved > 3 -> run ", "line 1, column 23: run needs a command"},
		{"a: reserved > 3 -> log snapshot", "line 1, column 24: a comma is missing"},
		{"a: (reserved > 3 -> log", "line 1, column 14: ) is missing after the expression"},
		{"a: rate reserved > 3 -> log", "line 1, column 9: ( is missing after rate"},
		{"a: 3 + > 3 -> log", "line 1, column 8: a name or a number is missing"},
		{"a: reserved > 1 -> log\na: reserved > 2 -> log", `line 2, column 1: there are two alarms "a"`},
		{"a: " + strings.Repeat("(", 200) + "1", "parentheses in each other"},
		{"a: reserved > 1e999 -> log", "is no value"},
	} {
		_, err := ParseRules(tt.text)
		var wrong *SyntaxError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %s", tt.text, err, tt.want)
		}
	}
}

func FuzzRules(f *testing.F) {
	for line := range strings.Lines(DefaultRules) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ParseRules(text)
		if err != nil {
			return
		}
		e := newEngine(rules)
		for i := range 20 {
			r := Row{}
			r.V[Step], r.V[Time] = int64(i), int64(i)*1e6
			e.sample(who{"a", 0}, "job", r, r.time())
		}
		e.tick(time.Unix(100, 0))
	})
}
