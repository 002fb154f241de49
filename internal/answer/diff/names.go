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

// functionName returns the name of a function without addresses.
func functionName(name string) string {
	if !strings.Contains(name, "0x") {
		return name
	}
	return address.ReplaceAllString(name, "")
}

// fileName returns the name of a file without its directories and without what
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

// placed reports whether a frame has a line in a source file. Frames of
// compiled code have none in the usual builds, and the names of their files are
// those of the machine that compiled them. Python gives a line of -1 now and
// then.
func placed(line int64, file string) bool {
	return file != "" && file != "??" && (line > 0 || strings.HasSuffix(file, ".py"))
}

// generated reports whether the name of a file changes from run to run.
func generated(file string) bool {
	return strings.HasPrefix(fileName(file), "<") && fileName(file) != file
}
