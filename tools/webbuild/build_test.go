package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed page is the one that the sources make.
func TestDist(t *testing.T) {
	if err := run("../..", true); err != nil {
		t.Fatal(err)
	}
}

// The script is small, and neither it nor the document loads anything from
// elsewhere or asks for what the content security policy forbids.
func TestPolicy(t *testing.T) {
	files, err := build("../..")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 256 << 10
	for _, f := range files {
		text := string(f.data)
		if len(text) > limit {
			t.Errorf("%s has %d bytes, more than %d", f.name, len(text), limit)
		}
		for _, bad := range []string{"eval(", "new Function", "document.write", "@import", "sourceMappingURL", "https://"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %q", f.name, bad)
			}
		}
		if f.name == "index.html" && (strings.Contains(text, "style=") || strings.Contains(text, "<style") || strings.Contains(text, "onload")) {
			t.Errorf("%s has something inline", f.name)
		}
	}
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files := []file{{"a", []byte("one")}}
	write("a", "one")
	if err := compare(dir, files); err != nil {
		t.Errorf("the same file: %v", err)
	}
	write("a", "two")
	write("b", "left over")
	err := compare(dir, files)
	for _, want := range []string{"dist/a is not what web makes", "dist/b does not come from web"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestBroken(t *testing.T) {
	dir := t.TempDir()
	if _, err := build(dir); err == nil {
		t.Error("a directory without sources was built")
	}
}
