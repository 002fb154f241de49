package plancompare

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Run is a recording of a whole run.
type Run struct {
	Case
	// Ledger holds the run. The op of a tensor is the chain of ops that
	// allocated it, innermost first; its module is the Python frames, innermost
	// first.
	Ledger *ledger.Ledger
	// FreedBy and FreedAt are for each tensor the ops and the frames of its
	// free.
	FreedBy, FreedAt []ledger.Name
}

// Open reads the recording of a case from testdata/plan/runs.
func Open(name string) (*Run, error) {
	dir, err := Folder()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, "runs", name+extension))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no recording %q; plandiff -all lists those there are: %w", name, os.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Names lists the recordings.
func Names() ([]string, error) {
	dir, err := Folder()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*"+extension))
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), extension)
	}
	slices.Sort(files)
	return files, nil
}

const extension = ".gz"

// Folder is the testdata/plan at or above the working directory.
func Folder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		folder := filepath.Join(dir, "testdata", "plan")
		if _, err := os.Stat(folder); err == nil {
			return folder, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no testdata/plan above the working directory; run this inside the repository")
		}
		dir = up
	}
}
