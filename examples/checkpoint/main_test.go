package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/examples/internal/exampletest"
)

func TestRun(t *testing.T) {
	*folder = t.TempDir()
	exampletest.Check[driver.Copier](t, run, want, exampletest.Host())

	files, err := filepath.Glob(filepath.Join(*folder, "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("files %v, %v", files, err)
	}
	// The example's own check can fail.
	if err := os.Rename(files[0], files[1]); err != nil {
		t.Fatal(err)
	}
	if err := check(files[1]); err == nil {
		t.Error("the weights of another step are taken for right")
	}
}

const want = `
6 steps done, 3 checkpoints written and checked
`
