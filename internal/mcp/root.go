package mcp

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/guard"
)

// Root is the folder whose files may be read.
type Root struct {
	dir  string // as it was given, absolute
	real string // without links
}

// OpenRoot makes a folder the root.
func OpenRoot(dir string) (*Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("%s: no such directory; check the name", dir)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory; give one", dir)
	}
	return &Root{abs, real}, nil
}

// Dir returns the folder, without links.
func (r *Root) Dir() string { return r.real }

// Check says why a path may not be read, which is relative to the root or
// absolute. It follows links. That there is no such file is no reason.
func (r *Root) Check(path string) error {
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") {
		return fmt.Errorf("%s: .. is not followed; name a file under %s without it", path, r.dir)
	}
	full := filepath.Clean(path)
	if !filepath.IsAbs(path) {
		full = filepath.Join(r.real, path)
	}
	if !within(r.dir, full) && !within(r.real, full) {
		return r.outside(path)
	}
	for at := full; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		switch {
		case err == nil && within(r.real, real):
			return guard.Check(full)
		case err == nil:
			return r.outside(path)
		}
		if _, err := os.Lstat(at); err == nil {
			return fmt.Errorf("%s: a link in it leads nowhere; name the file itself", path)
		}
	}
}

func (r *Root) outside(path string) error {
	return fmt.Errorf("%s: outside of %s, and ashlar mcp reads no file there; name one inside, or start ashlar mcp with another --root", path, r.dir)
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// maxEntries is more than a folder with a model has.
const maxEntries = 20_000

// CheckModel is [Root.Check] for a model, of which all that is in its folder may
// be read: a folder, or one of its files.
func (r *Root) CheckModel(path string) error {
	if err := r.Check(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil // what is wrong with it shows when it is read
	}
	left := maxEntries
	if !info.IsDir() && filepath.Base(path) != "model_index.json" {
		return r.checkLinks(filepath.Dir(path), 0, &left)
	}
	if !info.IsDir() {
		path = filepath.Dir(path)
	}
	return r.checkLinks(path, maxDepth, &left)
}

const maxDepth = 8

// checkLinks follows the links in a folder, and in those below it.
func (r *Root) checkLinks(dir string, depth int, left *int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	if *left -= len(entries); *left < 0 {
		return fmt.Errorf("%s: more than %d files, too many for a model; name the folder with its config.json", dir, maxEntries)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		folder := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(path)
			folder = err == nil && info.IsDir()
			ext := filepath.Ext(path)
			if err != nil || !(folder && depth > 0 || ext == ".json" || ext == ".safetensors") {
				continue // nobody reads it
			}
			if err := r.Check(path); err != nil {
				return err
			}
		}
		if folder && depth > 0 {
			if err := r.checkLinks(path, depth-1, left); err != nil {
				return err
			}
		}
	}
	return nil
}
