package detect

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// linkOrder rebuilds the order in which the loader looks for symbols from
// files: the program, the preloaded objects, then what these were linked with,
// breadth first. Only objects that are in the process count.
func (t *target) linkOrder() []*object {
	order := []*object{t.program}
	for _, name := range t.preloads() {
		if o := t.named(name); o != nil && !slices.Contains(order, o) {
			order = append(order, o)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, name := range order[i].needed {
			if o := t.named(name); o != nil && !slices.Contains(order, o) {
				order = append(order, o)
			}
		}
	}
	return order
}

// preloads lists the objects of LD_PRELOAD, then those of the system's file.
func (t *target) preloads() []string {
	names := preloadNames(t.variable("LD_PRELOAD"))
	f, err := proc.OpenFile(t.pid, "/etc/ld.so.preload")
	if err != nil {
		return names
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return names
	}
	for line := range bytes.Lines(data) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		names = append(names, preloadNames(string(line))...)
	}
	return names
}

// preloadNames splits a list at colons and blanks, as the loader does.
func preloadNames(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(": \t\n", r) })
}

// variable is a value of the environment the process was started with.
func (t *target) variable(name string) string {
	for _, v := range t.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// searchOrder is the loader's list of objects or, where that cannot be read,
// what can be said of it from files.
func (t *target) searchOrder() []*object {
	if t.order != nil {
		return t.order
	}
	return t.linkOrder()
}

// named finds the object that the loader means by a name: a path, or the name
// a library gives itself or its file has. What the loader itself remembers
// counts first: files may have been replaced since.
func (t *target) named(name string) *object {
	isPath := strings.Contains(name, "/")
	if isPath && strings.Contains(name, "$") {
		name, isPath = filepath.Base(name), false // $ORIGIN and $LIB are the loader's
	}
	for _, o := range t.objects {
		if o.loaded == name || !isPath && (filepath.Base(o.loaded) == name || o.soname == name || o.name() == name) {
			return o
		}
	}
	if isPath {
		if o := t.atPath(name); o != nil {
			return o
		}
	}
	return t.replaced(name)
}

// atPath finds an object by a path, which may be a link to it.
func (t *target) atPath(path string) *object {
	for _, o := range t.objects {
		if o.path == path {
			return o
		}
	}
	f, err := proc.OpenFile(t.pid, path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for _, o := range t.objects {
		if o.file != nil && sameFile(o.file, f) {
			return o
		}
	}
	return nil
}

// replaced finds the object that a name led to until its file was removed or
// another one took its place: the same path, the same library of another
// version under the name, or a file whose name goes on with its version.
func (t *target) replaced(name string) *object {
	for _, o := range t.objects {
		if !o.deleted {
			continue
		}
		path := name
		switch {
		case !strings.Contains(name, "/"):
			path = filepath.Join(filepath.Dir(o.path), name)
		case !filepath.IsAbs(name):
			dir, err := proc.Directory(t.pid)
			if err != nil {
				continue
			}
			path = filepath.Join(dir, name)
		}
		versioned := strings.HasPrefix(o.name(), filepath.Base(path)+".") && t.sameDirectory(filepath.Dir(path), filepath.Dir(o.path))
		if o.path == path || versioned || o.soname != "" && t.sonameAt(path) == o.soname {
			return o
		}
	}
	return nil
}

// sonameAt is the name that the library at a path gives itself; empty if there
// is none.
func (t *target) sonameAt(path string) string {
	f, err := proc.OpenFile(t.pid, path)
	if err != nil {
		return ""
	}
	defer f.Close()
	m, err := newImageOfFile(f)
	if err != nil {
		return ""
	}
	return m.soname
}

func (t *target) sameDirectory(a, b string) bool {
	if a == b {
		return true
	}
	x, err := proc.OpenFile(t.pid, a)
	if err != nil {
		return false
	}
	defer x.Close()
	y, err := proc.OpenFile(t.pid, b)
	if err != nil {
		return false
	}
	defer y.Close()
	return sameFile(x, y)
}
