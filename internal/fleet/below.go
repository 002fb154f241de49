package fleet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/input"
)

// Path is a file to be added.
type Path struct {
	Name  string
	Found bool // in a folder that the user named: it may be nothing for the fleet
}

// Below puts what is below a folder in its place, in the order of the names, and
// files that a pattern matches in place of the pattern. What it leaves out of a
// folder it says, but for other things than files, folders and links.
func Below(args []string) (files []Path, skipped []Refused, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil || !info.IsDir() {
			some, _, err := input.Expand([]string{arg})
			if err != nil {
				return nil, nil, err
			}
			for _, path := range some {
				files = append(files, Path{Name: path})
			}
			continue
		}
		before := len(files)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			why := ""
			switch {
			case err != nil:
				why = reason(err)
			case path == arg:
				return nil
			case strings.HasPrefix(d.Name(), "."):
				why = "its name begins with a dot"
			case d.Type()&fs.ModeSymlink != 0:
				to, err := os.Stat(path)
				if err == nil && to.Mode().IsRegular() {
					files = append(files, Path{path, true})
					return nil
				}
				why = "it is a link to a folder: name that, too"
				if err != nil {
					why = "it is a link that leads nowhere"
				}
			case d.IsDir():
				return nil
			case !d.Type().IsRegular():
				return nil
			default:
				files = append(files, Path{path, true})
				return nil
			}
			skipped = append(skipped, Refused{path, why})
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		if len(files) == before {
			return nil, nil, errors.New(arg + ": there are no files in it; name a folder with snapshots, dumps or messages")
		}
	}
	return files, skipped, nil
}

// reason is what is wrong with a path, without the path.
func reason(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}
