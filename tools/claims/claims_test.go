package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

func TestVerdict(t *testing.T) {
	r := between(0.15, 0.2, percent)
	for _, c := range []struct {
		values []float64
		want   string
		follow int
	}{
		{nil, open, 0},
		{[]float64{0.15, 0.2}, holds, 2},
		{[]float64{0.149, 0.5}, holdsNever, 0},
		{[]float64{0.1, 0.17, 0.18}, holdsWhen, 2},
	} {
		var values []value
		for _, x := range c.values {
			values = append(values, value{x: x})
		}
		if got, n := verdict(values, r); got != c.want || n != c.follow {
			t.Errorf("%v: %s, %d, want %s, %d", c.values, got, n, c.want, c.follow)
		}
	}
}

func TestSummary(t *testing.T) {
	few := []value{{"a", 0.5}, {"", 0.015}}
	if got, want := summary(few, percent), "50 % (a), 1.5 %"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	many := []value{{"a", 5}, {"b", 1}, {"c", 4}, {"d", 2}, {"e", 3}}
	if got, want := summary(many, plain), "median 3, from 1 (b) to 5 (a)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestNumbers(t *testing.T) {
	got := numbers("84 / 1,103 / 20.5 µs")
	if len(got) != 3 || got[0] != 84 || got[1] != 1103 || got[2] != 20.5 {
		t.Error(got)
	}
}

// The page has every row, and those that need no command are as they would be written.
func TestPage(t *testing.T) {
	data, err := os.ReadFile("../../docs/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	l, err := newLab("../..", "")
	if err != nil {
		t.Fatal(err)
	}
	seen, compared := map[string]bool{}, 0
	for _, g := range groups() {
		for _, r := range g.rows {
			if seen[r.id] || strings.Count(page, `<a id="`+r.id+`"></a>`) != 1 {
				t.Errorf("%s is not once in docs/claims.md; run make claims", r.id)
			}
			seen[r.id] = true
			a, err := l.answer(r)
			switch {
			case errors.Is(err, errNoCommand):
				continue
			case err != nil:
				t.Error(err)
			case a.verdict == holdsWhen && r.when == "":
				t.Errorf("%s holds for %v: say when", r.id, a.followers())
			}
			if compared++; !strings.Contains(page, a.line()) {
				t.Errorf("docs/claims.md lacks this line; run make claims:\n%s", a.line())
			}
		}
	}
	if compared < 20 {
		t.Errorf("%d rows compared", compared)
	}
	const preset = ",garbage_collection_threshold:0.7,expandable_segments:True"
	var results []*whatif.Result
	when := "every:1"
	for _, conf := range []string{
		"expandable_segments:True", "max_split_size_mb:20", "garbage_collection_threshold:0.5", "roundup_power2_divisions:4",
		"max_split_size_mb:128" + preset, "max_split_size_mb:512" + preset,
	} {
		results = append(results, &whatif.Result{Settings: conf, EmptyCache: &when})
	}
	change := whatif.ChangeNoCache
	results = append(results, &whatif.Result{Change: &change})
	rows := text.ClaimsOf(results)
	for _, id := range rows {
		if !seen[id] {
			t.Errorf("whatif names %s, which is no row", id)
		}
	}
	if len(rows) != 8 {
		t.Errorf("whatif names %v", rows)
	}
}
