package text

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// firstLines returns the first n lines of a text.
func firstLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[:min(n, len(lines))], "")
}

// Whoever reads six lines of a real failure knows why, where, and what to type.
func TestSixLines(t *testing.T) {
	short.Skip(t)
	died := 0
	for _, pattern := range []string{"snapshots/*tight*.pickle.gz", "fresh/*tight*.pickle.gz", "advice/shared/*.pickle.gz"} {
		files, err := filepath.Glob("../../../testdata/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, file := range files {
			c, r := explainedFile(t, file)
			if r.Cause == explain.None {
				continue
			}
			died++
			for _, columns := range []int{80, 100, 200} {
				var b bytes.Buffer
				head := ExplainHead{Name: filepath.Base(file), About: strings.Join(c.About, "; ")}
				if err := Explain(&b, head, r, ExplainOptions{}, Style{Width: columns}); err != nil {
					t.Fatal(err)
				}
				checkSix(t, r, b.String())
				for _, line := range strings.Split(b.String(), "\n") {
					if width(line) > columns && !strings.Contains(line, "export ") { // what is copied is not broken
						t.Errorf("%s: wider than %d: %s", head.Name, columns, line)
					}
				}
			}
		}
	}
	if died != 24 {
		t.Errorf("%d failures, want 24", died)
	}
}

func explainedFile(t *testing.T, file string) (*explain.Case, *explain.Report) {
	t.Helper()
	in, err := input.Open(t.Context(), file, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := explain.NewCase(-1)
	if err := c.AddFile(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	r, err := c.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func checkSix(t *testing.T, r *explain.Report, text string) {
	t.Helper()
	if n := strings.Count(text, "\n"); n > explainLines {
		t.Errorf("%d lines:\n%s", n, text)
	}
	six := firstLines(text, 6)
	flat := strings.Join(strings.Fields(six), " ")
	typed, _ := typedText(&r.Fixes[0])
	for _, want := range []string{"Cause: " + strings.ReplaceAll(r.Cause, "_", " ") + " (", r.Line.String(), "Try this first: " + typed} {
		if want == "" || !strings.Contains(flat, want) {
			t.Errorf("no %q in the first six lines:\n%s", want, six)
		}
	}
	if typed == "" {
		t.Errorf("nothing to type:\n%s", text)
	}
}
