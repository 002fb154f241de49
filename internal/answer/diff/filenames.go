package diff

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/trace"
)

// FileNames returns a name for each file: its own, with as many folders before it
// as make files of the same name differ.
func FileNames(files []string) map[string]string {
	alike := map[string][]string{} // by the last part
	for _, f := range files {
		base := filepath.Base(f)
		if !slices.Contains(alike[base], f) {
			alike[base] = append(alike[base], f)
		}
	}
	out := map[string]string{}
	for _, same := range alike {
		n := 1
		for ; !distinct(same, n); n++ {
		}
		for _, f := range same {
			out[f] = lastParts(f, n)
		}
	}
	if _, ok := out["-"]; ok {
		out["-"] = "stdin"
	}
	return out
}

// distinct reports whether the last n parts of the paths differ, or are all there
// is.
func distinct(paths []string, n int) bool {
	seen := map[string]bool{}
	whole := true
	for _, p := range paths {
		last := lastParts(p, n)
		seen[last] = true
		whole = whole && last == filepath.ToSlash(p)
	}
	return len(seen) == len(paths) || whole
}

// lastParts returns the last n parts of a path, with slashes.
func lastParts(path string, n int) string {
	path = filepath.ToSlash(path)
	at := len(path)
	for ; n > 0; n-- {
		if at = strings.LastIndexByte(path[:at], '/'); at < 0 {
			return path
		}
	}
	return path[at+1:]
}

// RankName returns the name of a file, with the device if it has several.
func RankName(file string, t *trace.Trace, devices int) string {
	if devices > 1 {
		return fmt.Sprintf("%s:%d", file, t.Device)
	}
	return file
}
