package main

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// docs/measured/plan.md has the tables as they are printed, and the bars hold.
func TestDocsHaveTheTables(t *testing.T) {
	data, err := os.ReadFile("../../docs/measured/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		has[strings.TrimSpace(line)] = true
	}
	var b strings.Builder
	out := bufio.NewWriter(&b)
	if err := run(out, []string{"-table"}); err != nil {
		t.Error(err)
	}
	out.Flush()
	n := 0
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") && !strings.HasSuffix(line, ": holds") {
			continue
		}
		if n++; !has[line] {
			t.Errorf("docs/measured/plan.md lacks this line, which `make bench-plan` prints:\n%s", line)
		}
	}
	if n < 80 {
		t.Errorf("%d lines of tables", n)
	}
}
