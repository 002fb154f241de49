package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "..", "root of the repository")
	check := flag.Bool("check", false, "compare view/dist with what would be written, and write nothing")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "webbuild:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := build(root)
	if err != nil {
		return err
	}
	dist := filepath.Join(root, "internal", "view", "dist")
	if check {
		return compare(dist, files)
	}
	for _, f := range files {
		name := filepath.Join(dist, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.data, 0o644); err != nil {
			return err
		}
		fmt.Printf("%8d  view/dist/%s\n", len(f.data), f.name)
	}
	return nil
}

// compare says which files of dist are not as they would be written, or do not
// belong there.
func compare(dist string, files []file) error {
	var wrong []error
	want := make(map[string]bool)
	for _, f := range files {
		want[f.name] = true
		got, err := os.ReadFile(filepath.Join(dist, filepath.FromSlash(f.name)))
		if err != nil || !bytes.Equal(got, f.data) {
			wrong = append(wrong, fmt.Errorf("internal/view/dist/%s is not what web makes: run make web", f.name))
		}
	}
	err := filepath.WalkDir(dist, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dist, path)
		if err == nil && !want[filepath.ToSlash(name)] {
			wrong = append(wrong, fmt.Errorf("view/dist/%s does not come from web: remove it", filepath.ToSlash(name)))
		}
		return err
	})
	return errors.Join(append(wrong, err)...)
}
