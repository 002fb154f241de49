package explain

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// A recording names paths of another machine; only files below the directory that
// the user gave are opened.
func TestSourceLine(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "project")
	for name, text := range map[string]string{
		"project/src/train.py": "import torch\n  losses.append(loss)  \n", "project/train.py": "other\nother\n", "secret.py": "a\nsecret\n",
	} {
		file := filepath.Join(outside, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "secret.py"), filepath.Join(dir, "link.py")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file string
		line int64
		want string
	}{
		{"/job/src/train.py", 2, "losses.append(loss)"},
		{"/elsewhere/train.py", 2, "other"},
		{"src/train.py", 9, ""},
		{filepath.Join(outside, "secret.py"), 2, ""},
		{"../secret.py", 2, ""},
		{"link.py", 2, ""},
		{"src", 1, ""},
		{"", 1, ""},
	} {
		if got := sourceLine(dir, timeline.Frame{Filename: tt.file, Line: tt.line}); got != tt.want {
			t.Errorf("%s:%d: %q, want %q", tt.file, tt.line, got, tt.want)
		}
	}
	if got := sourceLine(filepath.Join(outside, "none"), timeline.Frame{Filename: "train.py", Line: 1}); got != "" {
		t.Error(got)
	}
}
