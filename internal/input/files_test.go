package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Directories and patterns become their files, numbers in order; what is named
// stays, whether it exists or not.
func TestExpand(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join("ranks", "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rank2.gz", "rank10.gz", "[odd].gz", ".hidden"} {
		if err := os.WriteFile(filepath.Join("ranks", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args  []string
		want  string
		found bool
	}{
		{[]string{"a", "-"}, "a -", false},
		{[]string{"ranks"}, "ranks/[odd].gz ranks/rank2.gz ranks/rank10.gz", true},
		{[]string{"ranks/r*", "b"}, "ranks/rank2.gz ranks/rank10.gz b", true},
		{[]string{"ranks/[odd].gz"}, "ranks/[odd].gz", false}, // there is a file of that name
		{[]string{"ranks/i*"}, "ranks/i*: no file matches; check the pattern", true},
		{[]string{"ranks/[r"}, "ranks/[r: the pattern is not complete: write [ only with a ]", true},
	} {
		files, found, err := Expand(tt.args)
		got := strings.Join(files, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want || found != tt.found {
			t.Errorf("%q: %s, %v", tt.args, got, found)
		}
	}
}
