package alloc_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/test/script"
)

var update = flag.Bool("update", false, "rewrite the scripts in testdata/alloc with what happens now")

// TestScripts runs the scripts that explain the allocator's rules. Read them
// in testdata/alloc; package script explains their language.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("../testdata/alloc/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := script.RunFile(string(want))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s (-script +allocator):\n%s", file, d)
			}
		})
	}
}

// FuzzScript runs operation scripts made by the fuzzer: whatever the
// operations are, the invariants hold after each, every live block can be
// freed at the end and all memory goes back to the device.
func FuzzScript(f *testing.F) {
	files, _ := filepath.Glob("../testdata/alloc/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var commands []string
		for line := range strings.Lines(string(text)) {
			if c, ok := strings.CutPrefix(line, "> "); ok {
				commands = append(commands, c)
			}
		}
		f.Add(strings.Join(commands, ""))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := script.New()
		for i, line := range strings.Split(text, "\n") {
			if i == 300 {
				break
			}
			if _, err := r.Run(line); err != nil {
				if !errors.Is(err, script.ErrCommand) {
					t.Fatalf("line %d %q: %v", i, line, err)
				}
				continue
			}
			if err := r.Check(); err != nil {
				t.Fatalf("after line %d %q: %v", i, line, err)
			}
		}
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
	})
}
