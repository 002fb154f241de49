package input

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Expand puts the files of a directory in its place, and those that a pattern
// matches, which a shell has not expanded. found reports whether there was such
// an argument.
func Expand(args []string) (files []string, found bool, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		var inside []string
		switch {
		case arg != "-" && err == nil && info.IsDir():
			inside, err = filesIn(arg)
		case err != nil && IsPattern(arg):
			inside, err = filesMatching(arg)
		default:
			files = append(files, arg) // what is wrong with it shows when it is read
			continue
		}
		if err != nil {
			return nil, true, err
		}
		found = true
		files = append(files, inside...)
	}
	return files, found, nil
}

// IsPattern reports whether an argument that is no file may be a pattern for some.
func IsPattern(arg string) bool { return strings.ContainsAny(arg, "*?[") }

// Matching lists the files and folders that a pattern matches, numbers in their
// names in order.
func Matching(pattern string) ([]string, error) {
	all, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: the pattern is not complete: write [ only with a ]", pattern)
	}
	if len(all) == 0 {
		return nil, noMatch(pattern)
	}
	slices.SortFunc(all, compareNatural)
	return all, nil
}

func noMatch(pattern string) error {
	return fmt.Errorf("%s: no file matches; check the pattern", pattern)
}

// filesMatching leaves the folders out.
func filesMatching(pattern string) ([]string, error) {
	all, err := Matching(pattern)
	all = slices.DeleteFunc(all, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.IsDir()
	})
	if err == nil && len(all) == 0 {
		err = noMatch(pattern)
	}
	return all, err
}

// filesIn lists the files of a directory, numbers in their names in order.
func filesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, openProblem(dir, err)
	}
	var out []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // a link may lead to a file
		if strings.HasPrefix(e.Name(), ".") || err == nil && !info.Mode().IsRegular() {
			continue
		}
		out = append(out, path)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: there are no files in it; name a directory with a snapshot of each rank", dir)
	}
	slices.SortFunc(out, compareNatural)
	return out, nil
}

// compareNatural orders names so that rank2 comes before rank10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingDigits(a), leadingDigits(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return int(a[0]) - int(b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		p, q := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		switch {
		case len(p) != len(q):
			return len(p) - len(q)
		case p != q:
			return strings.Compare(p, q)
		}
		a, b = a[len(x):], b[len(y):]
	}
	return len(a) - len(b)
}

func leadingDigits(s string) string {
	n := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if n < 0 {
		n = len(s)
	}
	return s[:n]
}
