package text

import (
	"strings"
	"testing"
)

func TestGrid(t *testing.T) {
	g := grid{
		left: 1, head: [][]string{{"name", "bytes", "share", "time"}},
		rows: [][]string{{"a long name of a thing", "1.00 GiB", "5 %", "~1 ms"}, {"b", "20.00 MiB", "", "~12 ms"}},
		drop: []int{2}, cut: 0,
	}
	for columns, want := range map[int]string{
		80: "  name                        bytes  share    time\n  a long name of a thing   1.00 GiB    5 %   ~1 ms\n  b                       20.00 MiB         ~12 ms",
		49: "  name                        bytes    time\n  a long name of a thing   1.00 GiB   ~1 ms\n  b                       20.00 MiB  ~12 ms",
		38: "  name                 bytes    time\n  a long ...a thing   1.00 GiB   ~1 ms\n  b                20.00 MiB  ~12 ms",
	} {
		got := strings.Join(g.lines(columns), "\n")
		if columns == 38 { // what is cut is checked by its width
			for _, line := range g.lines(columns) {
				if width(line) > columns {
					t.Errorf("%d wide: %q", width(line), line)
				}
			}
			if !strings.Contains(got, "...") || strings.Contains(got, "share") {
				t.Error(got)
			}
			continue
		}
		if got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", columns, got, want)
		}
	}
}

func TestReflow(t *testing.T) {
	const text = "One two\nthree four five\nsix.\n\n  a  list   of\n  things\nThen seven."
	want := "One two three\nfour five six.\n\n  a  list   of\n  things\nThen seven."
	if got := Reflow(text, 15); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMiddle(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 5, "short"}, {"/a/long/way/to/file.pickle", 15, "/a/lon...pickle"}, {"abcdef", 4, "a..."}, {"äöüäöü", 6, "äöüäöü"},
	} {
		if got := middle(tt.text, tt.n); got != tt.want {
			t.Errorf("middle(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

// Sentences do not get as long as a wide terminal; rows that are one line each
// stay so where no terminal is.
func TestWrapping(t *testing.T) {
	long := strings.Repeat("word ", 60)
	for columns, want := range map[int]int{0: pageWidth, 80: 80, 200: longestLine} {
		var b strings.Builder
		(&page{w: &b, style: Style{Width: columns}}).wrapped("  ", long)
		if n := width(strings.SplitN(b.String(), "\n", 2)[0]); n > want || n < want-5 {
			t.Errorf("a sentence on %d columns is %d wide", columns, n)
		}
		b.Reset()
		(&page{w: &b, style: Style{Width: columns}}).row("  ", long)
		if lines := strings.Count(b.String(), "\n"); (lines == 1) != (columns == 0) {
			t.Errorf("a row on %d columns has %d lines", columns, lines)
		}
	}
}
