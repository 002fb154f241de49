package detect

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/hostmem/proc"
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

// named finds the object that the loader means by a name: a path, or the name
// a library gives itself or its file has.
func (t *target) named(name string) *object {
	if strings.Contains(name, "/") {
		if !strings.Contains(name, "$") {
			return t.atPath(name)
		}
		name = filepath.Base(name) // $ORIGIN and $LIB are the loader's
	}
	for _, o := range t.objects {
		if o.soname == name || o.name() == name {
			return o
		}
	}
	return nil
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
