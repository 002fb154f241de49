package snapshot

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// python runs one of the scripts in testdata and returns what it prints.
func python(t testing.TB, script string, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: what Python makes of these files is not checked")
	}
	cmd := exec.Command(path, append([]string{filepath.Join("testdata", script)}, args...)...)
	var out, fault bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &fault
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v: %s", script, strings.Join(args, " "), err, fault.String())
	}
	return out.Bytes()
}

// recordings returns the paths of the recorded snapshots.
func recordings(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, folder := range []string{"snapshots", "variety"} {
		paths, err := filepath.Glob(filepath.Join("..", "testdata", folder, "*.pickle.gz"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no recordings in testdata/%s: %v", folder, err)
		}
		all = append(all, paths...)
	}
	return short.Files(t, all, 8)
}

// isLarge tells the recordings apart that take seconds in Python.
func isLarge(path string) bool { return strings.Contains(path, "serve") }

func title(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".pickle")
}

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// asJSON returns a file in a form in which equal files are equal.
func asJSON(t testing.TB, f *File) string {
	t.Helper()
	var b strings.Builder
	if err := WriteJSON(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sample is a small recording with all kinds of things in it.
const sample = "../testdata/snapshots/streams_graphs-tight-default.pickle.gz"

// repickle returns the paths of the sample as other picklers would write it.
func repickle(t testing.TB, path string) []string {
	t.Helper()
	folder := t.TempDir()
	python(t, "repickle.py", path, folder)
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	return paths
}
