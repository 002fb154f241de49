package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed page and its types are those that the sources make.
func TestCommitted(t *testing.T) {
	if err := run("../..", true); err != nil {
		t.Fatal(err)
	}
}

// The script is small, and neither it nor the document loads anything from
// elsewhere or asks for what the content security policy forbids.
func TestPolicy(t *testing.T) {
	files, err := page("../..")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 320 << 10 // about 100 KiB on the wire
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
		if f.name == distDir+"/index.html" && (strings.Contains(text, "style=") || strings.Contains(text, "<style") || strings.Contains(text, "onload")) {
			t.Errorf("%s has something inline", f.name)
		}
	}
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "made", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "made"), 0o755); err != nil {
		t.Fatal(err)
	}
	files := []file{{"made/a", []byte("one")}, {"elsewhere/c", nil}}
	write("a", "one")
	if err := compare(dir, "made", files); err != nil {
		t.Errorf("the same file: %v", err)
	}
	write("a", "two")
	write("b", "left over")
	err := compare(dir, "made", files)
	for _, want := range []string{"made/a is not what is made", "made/b is not made here"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestBroken(t *testing.T) {
	dir := t.TempDir()
	if _, err := page(dir); err == nil {
		t.Error("a directory without sources was built")
	}
}
