package browsertests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every point of the table in README.md has tests by mouse and by keyboard, which
// exist.
func TestPoints(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
	}
	table, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	points := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.Contains(line, "---") || strings.Contains(line, "By mouse") {
			continue
		}
		points[strings.TrimSpace(cells[0])] = true
		for _, cell := range cells[2:] {
			for name := range strings.SplitSeq(cell, ",") {
				if name = strings.TrimSpace(name); !there[name] {
					t.Errorf("%s: there is no test %q", strings.TrimSpace(cells[1]), name)
				}
			}
		}
	}
	for _, point := range strings.Fields("1 2 3 4 5 6 7 8 9 10 11") {
		if !points[point] {
			t.Errorf("point %s has no line", point)
		}
	}
}
