package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGlibc(t *testing.T) {
	for text, want := range map[string]struct {
		v  [2]int
		ok bool
	}{
		"GLIBC_2.34":     {[2]int{2, 34}, true},
		"GLIBC_2.2.5":    {[2]int{2, 2}, true},
		"GLIBCXX_3.4.21": {},
		"GLIBC_PRIVATE":  {},
		"GLIBC_2.x":      {},
	} {
		if v, ok := glibc(text); ok != want.ok || ok && v != want.v {
			t.Errorf("%s is %v %t", text, v, ok)
		}
	}
}

func TestIdentify(t *testing.T) {
	for want, text := range map[string]string{
		"MIT":                "Permission is hereby\ngranted, free of charge, to any person",
		"Apache-2.0":         "   Apache License\n   Version 2.0, January 2004",
		"BSD-3-Clause":       "Redistribution and use in source and\nbinary forms ... Neither the name of",
		"BSD-2-Clause":       "Redistribution and use in source and binary forms",
		"Apache-2.0 AND MIT": "Apache License Version 2.0 ... Permission is hereby granted, free of charge",
		"":                   "All rights reserved.",
	} {
		if got := identify(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// No library of the page is bundled without its licence. Those of the command are read
// from itself, and make dist fails if one is none of those that identify knows.
func TestScripts(t *testing.T) {
	folders, err := os.ReadDir("../../web/vendor")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		n++
		text, err := os.ReadFile(filepath.Join("../../web/vendor", f.Name(), "LICENSE"))
		if err != nil || identify(string(text)) == "" || scripts[f.Name()] == "" {
			t.Errorf("%s: %v, %q", f.Name(), err, identify(string(text)))
		}
	}
	if n != len(scripts) {
		t.Errorf("%d folders of %d", n, len(scripts))
	}
}

// A member of an ar archive begins at an even offset, behind 60 bytes.
func TestAr(t *testing.T) {
	got := ar([]file{{"odd", []byte("abc"), 0o100644}, {"even", []byte("de"), 0o100644}})
	if len(got) != 8+60+4+60+2 || !bytes.HasPrefix(got[8+60+4:], []byte("even ")) || got[8+58] != '`' {
		t.Errorf("%q", got)
	}
}

func TestFolders(t *testing.T) {
	var names []string
	for _, f := range withFolders([]file{{"usr/bin/a", nil, 0o755}, {"usr/share/b", nil, 0o644}}) {
		names = append(names, f.name)
	}
	if got, want := strings.Join(names, " "), "./ ./usr/ ./usr/bin/ ./usr/bin/a ./usr/share/ ./usr/share/b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// checkRecord accepts a wheel and refuses one with a file that changed, and one
// with a file too many.
func TestRecord(t *testing.T) {
	const record = "x.dist-info/RECORD"
	good := []file{{"a.py", []byte("a = 1\n"), 0o644}}
	list := file{record, recordOf(good, record), 0o644}
	for _, x := range []struct {
		name  string
		files []file
		ok    bool
	}{
		{"good", []file{good[0], list}, true},
		{"changed", []file{{"a.py", []byte("a = 2\n"), 0o644}, list}, false},
		{"more", []file{good[0], {"b.py", nil, 0o644}, list}, false},
	} {
		data, err := zipped(x.files)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x.whl")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := checkRecord(path); (err == nil) != x.ok {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func TestVersions(t *testing.T) {
	if p, d := pythonVersion(), debianVersion(); strings.Contains(p, "-") || strings.Contains(d, "-") {
		t.Errorf("%s and %s: a hyphen has a meaning there", p, d)
	}
}

func TestAbsoluteLinks(t *testing.T) {
	const page = `[a](docs/a.md) [b](https://b.org/) [c](#here) <img src="docs/i.png">`
	const want = `[a](https://github.com/ashlar-mem/ashlar/blob/main/docs/a.md) [b](https://b.org/) [c](#here) ` +
		`<img src="https://github.com/ashlar-mem/ashlar/raw/main/docs/i.png">`
	if got := absoluteLinks(page); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
