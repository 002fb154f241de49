package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("root", "..", "root of the repository")
	check := flag.Bool("check", false, "compare the files with what would be written, and write nothing")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "webbuild:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := types(root)
	if err != nil {
		return err
	}
	more, err := tables(root)
	if err != nil {
		return err
	}
	files = append(files, more...)
	if !check {
		// The bundle has the tables in it.
		if err := write(root, files); err != nil {
			return err
		}
	}
	made, err := page(root)
	if err != nil {
		return err
	}
	if check {
		files = append(files, made...)
		return errors.Join(compare(root, typesDir, files), compare(root, distDir, files))
	}
	return write(root, made)
}

func write(root string, files []file) error {
	for _, f := range files {
		name := filepath.Join(root, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.data, 0o644); err != nil {
			return err
		}
		fmt.Printf("%8d  %s\n", len(f.data), f.name)
	}
	return nil
}

// compare says which files of a directory are not as they would be written, or
// do not belong there.
func compare(root, dir string, files []file) error {
	var wrong []error
	want := make(map[string]bool)
	for _, f := range files {
		if !strings.HasPrefix(f.name, dir+"/") {
			continue
		}
		want[f.name] = true
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.name)))
		if err != nil || !bytes.Equal(got, f.data) {
			wrong = append(wrong, fmt.Errorf("%s is not what is made: run make web", f.name))
		}
	}
	err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(dir)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil && !want[filepath.ToSlash(name)] {
			wrong = append(wrong, fmt.Errorf("%s is not made here: remove it", filepath.ToSlash(name)))
		}
		return err
	})
	return errors.Join(append(wrong, err)...)
}
