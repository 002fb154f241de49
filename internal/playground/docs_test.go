package playground

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// The documentation has every step, every lesson and the bounds.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "playground.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{units.Count(MaxLines) + " lines of", "streams 0 to 63"}
	for _, c := range Commands() {
		want = append(want, "| `"+c)
	}
	for _, e := range Experiments() {
		want = append(want, "| "+e.Title+" |")
	}
	for _, w := range want {
		if !strings.Contains(string(text), w) {
			t.Errorf("docs/playground.md does not have %q", w)
		}
	}
}
