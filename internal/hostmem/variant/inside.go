package variant

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

//go:embed source/inside.c
var insideSource string

// insideFolder is the variable that tells the library where to write.
const insideFolder = "ASHLAR_MALLOC_INSIDE"

// BuildInside builds the library that has a malloc say what the program holds, in
// scratch. The error says what is missing.
func BuildInside(ctx context.Context, scratch string) (string, error) {
	return Build(ctx, scratch, "libmallocinside.so", insideSource, "-shared", "-fPIC", "-ldl")
}

// WithInside adds the library to an environment. It writes into the folder.
func WithInside(environ []string, library, folder string) []string {
	out := []string{}
	loaded := library
	for _, assignment := range environ {
		if before, ok := strings.CutPrefix(assignment, preload+"="); ok {
			loaded = before + ":" + library
			continue
		}
		out = append(out, assignment)
	}
	return append(out, preload+"="+loaded, insideFolder+"="+folder)
}

// Inside is what malloc says of itself.
type Inside struct {
	InUse uint64 // bytes that the program holds
	Held  uint64 // bytes that malloc has for it
}

// lastly is how many milliseconds before the end count.
const lastly = 1000

// ReadInside returns what the processes of a run held in its last second: the
// median of each, summed. It is false if no malloc told.
func ReadInside(folder string) (Inside, bool) {
	type line struct {
		at int64
		Inside
	}
	var files [][]line
	var end int64
	names, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var lines []line
		for l := range strings.Lines(string(text)) {
			f := strings.Fields(l)
			if len(f) != 3 || !strings.HasSuffix(l, "\n") {
				continue // cut off
			}
			at, err1 := strconv.ParseInt(f[0], 10, 64)
			used, err2 := strconv.ParseUint(f[1], 10, 64)
			held, err3 := strconv.ParseUint(f[2], 10, 64)
			if err1 == nil && err2 == nil && err3 == nil {
				lines = append(lines, line{at, Inside{used, held}})
				end = max(end, at)
			}
		}
		files = append(files, lines)
	}
	var sum Inside
	found := false
	for _, lines := range files {
		last := slices.DeleteFunc(lines, func(l line) bool { return l.at < end-lastly })
		if len(last) == 0 {
			continue // it ended before
		}
		slices.SortFunc(last, func(a, b line) int { return int(int64(a.InUse) - int64(b.InUse)) })
		m := last[len(last)/2]
		sum.InUse += m.InUse
		sum.Held += m.Held
		found = true
	}
	return sum, found
}
