package input

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Expand puts the files of a directory in its place. directory reports whether
// there was one.
func Expand(args []string) (files []string, directory bool, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if arg == "-" || err != nil || !info.IsDir() {
			files = append(files, arg) // what is wrong with it shows when it is read
			continue
		}
		directory = true
		inside, err := filesIn(arg)
		if err != nil {
			return nil, true, err
		}
		files = append(files, inside...)
	}
	return files, directory, nil
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
