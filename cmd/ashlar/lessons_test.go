package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/lessons.md answers every figure of the lessons once, and its sessions are
// what the program prints, with lines left out where it has three dots.
func TestLessons(t *testing.T) {
	t.Chdir("../..")
	raw, err := os.ReadFile("docs/lessons.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	sessions := strings.Split(page, sessionStart)[1:]
	if len(sessions) < 15 {
		t.Errorf("%d sessions", len(sessions))
	}
	for _, s := range sessions {
		command, want, _ := session(t, "docs/lessons.md", s)
		if out := printedBy(t, command, exitOK, exitBad); !shortened(out, want) {
			t.Errorf("ashlar %s prints something else than docs/lessons.md has:\n%s", command, out)
		}
	}
	checkFigures(t, page)
}

var answered = regexp.MustCompile(`(?m)^\| ([0-9]+\.[0-9]+(?:, [0-9]+\.[0-9]+)*) \| ((?:confirmed|corrected|open)(?:, (?:confirmed|corrected|open))*) \| \S`)

// checkFigures compares the rows of the page with the list of figures.
func checkFigures(t *testing.T, page string) {
	t.Helper()
	times := map[string]int{}
	for _, m := range answered.FindAllStringSubmatch(page, -1) {
		figures := strings.Split(m[1], ", ")
		if n := strings.Count(m[2], ",") + 1; n != 1 && n != len(figures) {
			t.Errorf("%d verdicts for %v", n, figures)
		}
		for _, f := range figures {
			times[f]++
		}
	}
	list, err := os.ReadFile("testdata/lessons/figures.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		figure, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n++; times[figure] != 1 {
			t.Errorf("docs/lessons.md answers %d times: %s %s", times[figure], figure, text)
		}
		delete(times, figure)
	}
	if n < 60 || len(times) > 0 {
		t.Errorf("%d figures; not in the list: %v", n, times)
	}
}
