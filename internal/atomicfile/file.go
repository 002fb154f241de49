package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// File is a file being written. An ordinary file has no name until Commit, or a
// hidden one beside its own where the file system cannot do without. A pipe or a
// device is written to as it is: replacing it would destroy it.
type File struct {
	path      string // as it was given
	target    string // where links lead
	file      *os.File
	temporary bool
	part      string // the hidden name, "" if it has none
	complete  bool
	size      int64
}

// Create begins a file. A symbolic link is followed and stays. Opening a named
// pipe waits for its reader. Errors of this package say which file, and what to
// do about it.
func Create(path string) (*File, error) {
	f := &File{path: path, target: path}
	if path == "" {
		return nil, errors.New("the name of the file is empty: name a file to be written")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.temporary = true
		f.target, err = missingTarget(path)
	case err != nil:
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: name a file in it", path)
	case info.Mode().IsRegular():
		f.temporary = true
		f.target, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, f.failed(err)
	}
	if f.temporary {
		err = f.createTemporary(filepath.Dir(f.target))
	} else {
		f.file, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, f.failed(err)
	}
	return f, nil
}

// partPattern is what hidden names are like.
const partPattern = ".ashlar-*.part"

func (f *File) createTemporary(dir string) (err error) {
	removeStale(dir)
	if f.file = createNameless(dir); f.file != nil {
		return nil
	}
	if f.file, err = os.CreateTemp(dir, partPattern); err != nil {
		return err
	}
	f.part = f.file.Name()
	unfinished.Store(f.part, nil)
	lock(f.file)
	return nil
}

// maxLinks is how many links Linux follows.
const maxLinks = 40

// SameTarget reports whether two paths lead to one file, or will once it is written.
func SameTarget(a, b string) bool {
	x, err := os.Stat(a)
	y, other := os.Stat(b)
	if err == nil && other == nil {
		return os.SameFile(x, y)
	}
	a, err = missingTarget(a)
	b, other = missingTarget(b)
	return err == nil && other == nil && place(a) == place(b)
}

// place is the absolute path of a file that need not be there, with no link on the way to its folder.
func place(path string) string {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// missingTarget is the name of a file that is not there yet: the path, or where
// the links end that begin there.
func missingTarget(path string) (string, error) {
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path)) // or .. would lead elsewhere
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", errors.New("too many links")
}

// Target is the file that is written: the path, or where it leads to if it is a
// link.
func (f *File) Target() string { return f.target }

// Size is how many bytes have been written.
func (f *File) Size() int64 { return f.size }

func (f *File) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	f.size += int64(n)
	return n, f.failed(err)
}

// InPlace reports whether the file is written to as it is, as a pipe or a device.
func (f *File) InPlace() bool { return !f.temporary }

// Complete ends writing, so that Commit has only the name to give. Who writes
// several files that belong together completes all of them first, and soon commits
// them: a complete file is no longer locked. One that is replaced leaves its
// permissions.
func (f *File) Complete() error {
	if f.complete {
		return nil
	}
	if err := f.end(); err != nil {
		return f.failed(err)
	}
	f.complete = true
	return nil
}

func (f *File) end() error {
	if !f.temporary {
		return f.file.Close()
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(f.target); err == nil {
		mode = info.Mode().Perm()
	}
	if err := f.file.Chmod(mode); err != nil {
		return err
	}
	if err := f.name(); err != nil {
		return err
	}
	return f.file.Close()
}

// Commit completes the file, if need be, and gives it its name.
func (f *File) Commit() error {
	if err := f.Complete(); err != nil || !f.temporary {
		return err
	}
	if err := os.Rename(f.part, f.target); err != nil {
		return f.failed(err)
	}
	f.temporary = false
	unfinished.Delete(f.part)
	return nil
}

// name gives the file a hidden name if it has none: only a rename replaces what
// has the name of the target.
func (f *File) name() error {
	if f.part != "" {
		return nil
	}
	part := filepath.Join(filepath.Dir(f.target), strings.Replace(partPattern, "*", rand.Text(), 1))
	unfinished.Store(part, nil)
	if err := link(f.file, part); err != nil {
		unfinished.Delete(part)
		return err
	}
	f.part = part
	return nil
}

// Abort removes what has been written, as far as that can be taken back. It does
// nothing after Commit.
func (f *File) Abort() {
	f.file.Close() // possibly closed already
	if f.temporary && f.part != "" {
		os.Remove(f.part)
		unfinished.Delete(f.part)
	}
}

// unfinished has the hidden names of all files being written.
var unfinished sync.Map

// RemoveUnfinished removes all files being written, for a program that ends
// without Abort.
func RemoveUnfinished() {
	unfinished.Range(func(name, _ any) bool {
		os.Remove(name.(string))
		return true
	})
}

// Error says that a file cannot be written.
type Error struct {
	Path string // as it was given
	Err  error
}

func (e *Error) Error() string { return e.Path + " cannot be written: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// failed words an error, without the name of the temporary file.
func (f *File) failed(err error) error {
	if err == nil {
		return nil
	}
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &Error{f.path, err}
}
