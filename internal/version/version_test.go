package version

import (
	"os"
	"runtime/debug"
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

// What go install fetched says which version it is; a build in a work tree has
// the version of its sources, whatever the repository's tags are.
func TestOfModule(t *testing.T) {
	for _, x := range []struct {
		module debug.Module
		want   string
	}{
		{debug.Module{Version: "v0.3.1", Sum: "h1:x"}, "0.3.1"},
		{debug.Module{Version: "v0.0.0-20260101000000-0123456789ab+dirty"}, Text},
		{debug.Module{Version: "(devel)"}, Text},
		{debug.Module{}, Text},
	} {
		if got := ofModule(x.module); got != x.want {
			t.Errorf("%+v is %s, want %s", x.module, got, x.want)
		}
	}
}
