package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const graphs = "../../testdata/variety/graphs.pickle.gz"

func leftIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A context that ends while a file is written leaves nothing behind.
func TestWritingInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	o, err := createOutput(ctx, filepath.Join(dir, "out.pickle.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range leftIn(t, dir) {
		if !strings.HasSuffix(name, ".part") {
			t.Errorf("while writing there is %s", name)
		}
	}
	cancel()
	if _, err := o.Write(make([]byte, 100)); err != nil {
		t.Errorf("the buffer is not written through: %v", err)
	}
	if err := o.commit(); !errors.Is(err, context.Canceled) {
		t.Errorf("commit: %v", err)
	}
	o.abort()
	if got := leftIn(t, dir); len(got) != 0 {
		t.Errorf("%v is left", got)
	}

	for _, args := range [][]string{{"gen", graphs}, {"convert", graphs}} {
		var stdout, stderr bytes.Buffer
		code := execute(ctx, stdio{out: &stdout, err: &stderr}, append(args, filepath.Join(dir, "out.pickle")))
		if code != exitInput || stderr.String() != "ashlar: interrupted\n" || stdout.Len() > 0 || len(leftIn(t, dir)) > 0 {
			t.Errorf("%v: status %d, stderr %q, left %v", args, code, &stderr, leftIn(t, dir))
		}
	}
}

// An error of the disk is told as it is, not as one of what was being done.
func TestWritingFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	o, err := createOutput(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	o.file.Abort() // stands in for a full disk
	_, err = o.Write(make([]byte, 1<<20))
	err = o.failed(fmt.Errorf("in.json: %w", err))
	var failed failure
	if !errors.As(err, &failed) || err.Error() != path+" cannot be written: file already closed" {
		t.Errorf("writing: %v", err)
	}
	if err := o.commit(); err == nil {
		t.Error("an incomplete file is committed")
	}
}

func TestGeneratedFileCannotBeAnnounced(t *testing.T) {
	for _, command := range []string{"gen", "convert"} {
		var stderr bytes.Buffer
		code := execute(t.Context(), stdio{out: brokenWriter{}, err: &stderr}, []string{command, graphs, filepath.Join(t.TempDir(), "out.pickle")})
		if code != exitInput || stderr.String() != "ashlar: writing the result: disk full\n" {
			t.Errorf("%s: status %d, stderr %q", command, code, &stderr)
		}
	}
}

// Names of files go to the terminal without what it would obey.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(graphs)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "a\x1b[31mred.pickle.gz")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Skip("no such name here:", err)
	}
	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"report", name}, exitOK},
		{[]string{"convert", name, filepath.Join(dir, "b\x1b[2J.json")}, exitOK},
		{[]string{"report", name, "-o", filepath.Join(dir, "no\x1b[2Jwhere", "x.html")}, exitInput},
		{[]string{"explain", filepath.Join(dir, "missing\x1b[2J")}, exitInput},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, tt.args)
		said := stdout.String() + stderr.String()
		if code != tt.code || strings.Contains(said, "\x1b") || !strings.Contains(said, "?[") || strings.Count(said, "\n") != 1 {
			t.Errorf("%q: status %d, said %q", tt.args, code, said)
		}
	}
}

// Files that belong together are replaced together: if one cannot be written, the
// older ones stay.
func TestWritingOneOfSeveralFails(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	convert := func(dir, out string) (int, string) {
		var stdout, stderr bytes.Buffer
		args := []string{"convert", "--anonymous", "--names", filepath.Join(dir, "names.txt"), graphs, filepath.Join(dir, out)}
		return execute(t.Context(), stdio{out: &stdout, err: &stderr}, args), stderr.String()
	}
	for _, c := range []struct{ out, full string }{
		{"out.parquet", "out.parquet"},
		{"out.parquet", "out.stacks.parquet"},
		{"out.parquet", "names.txt"},
		{"out.json", "out.json"},
		{"out.json", "names.txt"},
		{"out.json.gz", "out.json.gz"},
	} {
		dir := t.TempDir()
		files := []string{c.out, "names.txt", "out.stacks.parquet"}
		for _, name := range files {
			var err error
			if path := filepath.Join(dir, name); name == c.full {
				err = os.Symlink(full, path)
			} else {
				err = os.WriteFile(path, []byte("old"), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if code, said := convert(dir, c.out); code != exitInput || said != "ashlar: "+filepath.Join(dir, c.full)+" cannot be written: no space left on device\n" {
			t.Errorf("%+v: status %d, %q", c, code, said)
		}
		for _, name := range files {
			if name == c.full {
				continue
			}
			if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != "old" {
				t.Errorf("%+v: %s has been replaced (%d bytes, %v)", c, name, len(data), err)
			}
		}
		if left := leftIn(t, dir); len(left) != len(files) {
			t.Errorf("%+v: %v is left", c, left)
		}
		if err := os.Remove(filepath.Join(dir, c.full)); err != nil {
			t.Fatal(err)
		}
		if code, said := convert(dir, c.out); code != exitOK {
			t.Errorf("%+v with room: status %d, %q", c, code, said)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "names.txt")); err != nil || string(data) == "old" {
			t.Errorf("%+v with room: the names are old, %v", c, err)
		}
	}
}
