package fleet

import (
	"cmp"
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
// files and folders that a pattern matches in place of the pattern. What it leaves
// out of a folder it says, but for other things than files, folders and links. An
// argument for which there is nothing is refused; the error is that of the first if
// there is nothing for any.
func Below(args []string) (files []Path, skipped, refused []Refused, err error) {
	for _, arg := range args {
		found, left, wrong := belowOne(arg)
		if wrong != nil {
			refused = append(refused, Refused{arg, wrong.Error()})
			err = cmp.Or(err, wrong)
		}
		files, skipped = append(files, found...), append(skipped, left...)
	}
	if len(files) > 0 {
		err = nil
	}
	return files, skipped, refused, err
}

func belowOne(arg string) (files []Path, skipped []Refused, err error) {
	info, err := os.Stat(arg)
	switch {
	case err != nil && input.IsPattern(arg):
		all, err := input.Matching(arg)
		for _, name := range all {
			info, wrong := os.Stat(name)
			if wrong != nil || !info.IsDir() {
				files = append(files, Path{Name: name})
				continue
			}
			found, left, wrong := belowFolder(name)
			files, skipped, err = append(files, found...), append(skipped, left...), cmp.Or(err, wrong)
		}
		if len(files) > 0 {
			err = nil // a folder without files is what a pattern may match
		}
		return files, skipped, err
	case err != nil || !info.IsDir():
		return []Path{{Name: arg}}, nil, nil // what is wrong with it shows when it is read
	}
	return belowFolder(arg)
}

func belowFolder(dir string) (files []Path, skipped []Refused, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		why := ""
		switch {
		case err != nil:
			why = reason(err)
		case path == dir:
			return nil
		case strings.HasPrefix(d.Name(), "."):
			why = "its name begins with a dot"
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Stat(path)
			switch {
			case err != nil:
				why = "it is a link that leads nowhere"
			case to.IsDir():
				why = "it is a link to a folder: name that, too"
			case !to.Mode().IsRegular():
				why = "it is a link to what is no file"
			default:
				why = isTable(path)
			}
		case d.IsDir() || !d.Type().IsRegular():
			return nil
		default:
			why = isTable(path)
		}
		if why == "" {
			files = append(files, Path{path, true})
			return nil
		}
		skipped = append(skipped, Refused{path, why})
		if d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = errors.New(dir + ": there are no files in it; name a folder with snapshots, dumps or messages")
	}
	return files, skipped, err
}

// isTable says why a table of results is left out: the error of a run in one of its
// rows is not that of a run of the fleet.
func isTable(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson", ".csv", ".tsv":
		return "it is a table: name it itself if it is a log"
	}
	return ""
}

// reason is what is wrong with a path, without the path.
func reason(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}
