package guard

import (
	"fmt"
	"io"
	"os"
)

// RefusedError says why a file is not read.
type RefusedError struct{ text string }

func (e *RefusedError) Error() string { return e.text }

// Check refuses what is neither a regular file nor a folder, and does not open it.
// Whoever opens what is not there says so.
func Check(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return &RefusedError{path + " is not a regular file"}
	}
	return nil
}

// Open opens a file that passes [Check].
func Open(path string) (*os.File, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// ReadFile reads a file of at most so many MiB that a user names, which may be a
// pipe. A longer one is none of a kind.
func ReadFile(path string, mib int, kind string) ([]byte, error) {
	return readFile(os.Open, path, mib, kind)
}

// ReadRegular is [ReadFile] for a file that passes [Check].
func ReadRegular(path string, mib int, kind string) ([]byte, error) {
	return readFile(Open, path, mib, kind)
}

func readFile(open func(string) (*os.File, error), path string, mib int, kind string) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := int64(mib) << 20
	tooLong := &RefusedError{fmt.Sprintf("%s: more than %d MiB: this is no %s", path, mib, kind)}
	if info, err := f.Stat(); err == nil && info.Size() > most {
		return nil, tooLong
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1)) // a device has no size, and a file may grow
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, tooLong
	}
	return data, nil
}
