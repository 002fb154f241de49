package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/version"
)

// tools/scripts/release with stand-ins for gh and python3: what it would do with
// each token, and that it does nothing for a tag of another version.
func TestRelease(t *testing.T) {
	const marks = "\necho \"$(basename \"$0\") $*\"\n"
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"tools/scripts/release", "internal/version/version.go"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(text), 0o755)
	}
	write("dist/a.whl", "wheel", 0o644)
	write("dist/SHA256SUMS", fmt.Sprintf("%x  a.whl\n", sha256.Sum256([]byte("wheel"))), 0o644)
	write("bin/gh", "#!/bin/sh"+marks, 0o755)
	write("bin/python3", "#!/bin/sh"+marks, 0o755)
	run := func(tag string, env ...string) (string, error) {
		c := exec.Command(filepath.Join(dir, "tools/scripts/release"), tag)
		c.Env = append([]string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}, env...)
		out, err := c.CombinedOutput()
		return string(out), err
	}

	tag := "v" + version.Text
	out, err := run(tag)
	if err != nil || strings.Count(out, "left out") != 2 || strings.Contains(out, "twine") {
		t.Errorf("without tokens: %v\n%s", err, out)
	}
	out, err = run(tag, "GH_TOKEN=x")
	if err != nil || !strings.Contains(out, "gh release create "+tag+" --draft") || strings.Contains(out, "twine") {
		t.Errorf("with one of GitHub: %v\n%s", err, out)
	}
	out, err = run(tag, "PYPI_TOKEN=x")
	if err != nil || !strings.Contains(out, "python3 -m twine upload --non-interactive dist/a.whl") || strings.Contains(out, "gh release") {
		t.Errorf("with one of PyPI: %v\n%s", err, out)
	}
	if out, err = run("v9.9", "GH_TOKEN=x", "PYPI_TOKEN=x"); err == nil || !strings.Contains(out, "the tag is v9.9, the sources are "+version.Text) {
		t.Errorf("another tag: %v\n%s", err, out)
	}
	write("dist/a.whl", "other", 0o644)
	if out, err = run(tag, "PYPI_TOKEN=x"); err == nil || strings.Contains(out, "twine") {
		t.Errorf("a wheel that is not what was tested: %v\n%s", err, out)
	}
}
