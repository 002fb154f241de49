package diff

import (
	"path"
	"regexp"
	"strings"
)

var (
	// address is what a name of a compiled function may hold of its place, as
	// in "forward + 0x1f2".
	address = regexp.MustCompile(`\s*\+?\s*0x[0-9a-fA-F]+`)
	// inductorFile is a file that torch.compile wrote, named by a hash of it.
	inductorFile = regexp.MustCompile(`^c[a-z2-7]{51}\.py$`)
	// notebookCell is a file that a notebook keeps a cell in.
	notebookCell = regexp.MustCompile(`/ipykernel_\d+/\d+\.py$`)
	// countedFile is the name of code without a file, with the number that
	// each piece gets: <ipython-input-12-0a1b>, <eval_with_key>.34.
	countedFile = regexp.MustCompile(`^<([a-zA-Z_-]*[a-zA-Z_])[^>]*>(\.\d+)?$`)
	// library matches a path down to the directory of installed packages or of
	// Python's own modules.
	library = regexp.MustCompile(`^.*/(site-packages|dist-packages|lib/python3(\.\d+)?)/`)
)

// functionName is the name of a function without addresses.
func functionName(name string) string {
	if !strings.Contains(name, "0x") {
		return name
	}
	return address.ReplaceAllString(name, "")
}

// fileName is the name of a file without its directories and without what
// changes from run to run in the name of a generated one.
func fileName(file string) string {
	base := path.Base(file)
	switch {
	case strings.HasPrefix(file, "<"):
		return countedFile.ReplaceAllString(file, "<$1>")
	case inductorFile.MatchString(base):
		return "<inductor>"
	case notebookCell.MatchString(file):
		return "<cell>"
	}
	return base
}

// libraryPath is the path of a file below the installed packages; false if it
// is not one of those.
func libraryPath(file string) (string, bool) {
	if at := library.FindStringIndex(file); at != nil {
		return file[at[1]:], true
	}
	return "", false
}

// placed tells whether a frame has a line in a source file. Frames of compiled
// code have none in the usual builds, and the names of their files are those of
// the machine that compiled them. Python gives a line of -1 now and then.
func placed(line int64, file string) bool {
	return file != "" && file != "??" && (line > 0 || strings.HasSuffix(file, ".py"))
}

// pairFiles finds for each file of a the one of b that is the same: by its
// path, else by its path below the installed packages, else by its name and as
// many of the directories above it as possible.
func pairFiles(a, b []string) map[string]string {
	out := map[string]string{}
	taken := map[string]bool{}
	inB := map[string]bool{}
	byLibrary := map[string]string{}
	byName := map[string][]string{}
	for _, f := range b {
		inB[f] = true
	}
	for _, f := range a {
		if inB[f] {
			out[f], taken[f] = f, true
		}
	}
	for _, f := range b {
		if taken[f] {
			continue
		}
		if p, ok := libraryPath(f); ok {
			byLibrary[p] = f
		}
	}
	for _, f := range a {
		p, ok := libraryPath(f)
		if g, found := byLibrary[p]; ok && found && out[f] == "" && !taken[g] {
			out[f], taken[g] = g, true
		}
	}
	for _, f := range b {
		if !taken[f] {
			byName[fileName(f)] = append(byName[fileName(f)], f)
		}
	}
	for _, f := range a {
		if out[f] != "" {
			continue
		}
		best, length := "", 0
		for _, g := range byName[fileName(f)] {
			if n := commonDirectories(f, g) + 1; !taken[g] && n > length {
				best, length = g, n
			}
		}
		if best != "" {
			out[f], taken[best] = best, true
		}
	}
	return out
}

// commonDirectories counts the directories next to the file that are the same.
func commonDirectories(f, g string) int {
	x, y := strings.Split(path.Dir(f), "/"), strings.Split(path.Dir(g), "/")
	n := 0
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}
