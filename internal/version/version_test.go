package version

import (
	"os"
	"strings"
	"testing"
)

// The version that is said is the one that the change log is at: the newest it
// names, or the one after it.
func TestChangeLog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	number, dev := strings.CutSuffix(Text, "-dev")
	if !dev && !strings.Contains(string(text), "## "+number) {
		t.Errorf("CHANGELOG.md has no %s", number)
	}
	if dev && !strings.Contains(string(text), "## Unreleased") {
		t.Errorf("%s, and CHANGELOG.md has nothing that is not released", Text)
	}
}
