package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// Every command that reads a file ends with an answer or with one line, also if
// the file has absurd numbers or settings that once ended it otherwise.
func TestHostileFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/hostile/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, command := range short.Some([]string{
		"stats FILE", "stats FILE --json", "events FILE", "explain FILE", "explain FILE --json", "verify FILE",
		"report FILE -o OUT.html", "whatif FILE --set expandable_segments:True", "tune FILE", "check FILE --max-reserved 1GiB",
		"check FILE --survives 1GiB", "diff FILE " + served, "diff " + served + " FILE", "convert FILE OUT.json", "convert FILE OUT.pickle",
		"convert FILE OUT.perfetto", "convert FILE OUT.parquet",
	}, 4) {
		for _, file := range files {
			t.Run(command+" "+filepath.Base(file), func(t *testing.T) {
				out := t.TempDir()
				var args []string
				for _, arg := range strings.Fields(command) {
					args = append(args, strings.NewReplacer("FILE", file, "OUT", filepath.Join(out, "out")).Replace(arg))
				}
				var stdout, stderr bytes.Buffer
				code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, args)
				if code < exitOK || code > exitInput {
					t.Errorf("status %d", code)
				}
				if code == exitInput {
					line := stderr.String()
					if !strings.HasPrefix(line, "ashlar: ") || !strings.Contains(line, file) || strings.Count(line, "\n") != 1 {
						t.Errorf("%q is no line about the file", line)
					}
				}
			})
		}
	}
}
