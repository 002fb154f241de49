package save

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// disk is the file system, which tests replace by one that fails.
type disk interface {
	// replace finds the file that a save to path replaces: where it is, if
	// path is a link to it, and its mode. A new file gets the usual mode.
	replace(path string) (target string, mode *fs.FileMode, err error)
	create(path string, mode *fs.FileMode) (file, error) // a file that is not there yet
	rename(from, to string) error
	remove(path string) error
	syncFolder(path string) error
}

type file interface {
	io.Writer
	Sync() error
	Close() error
}

// partFile is a file under its temporary name.
type partFile struct {
	disk       disk
	file       file
	name, path string // temporary and final
}

// create makes a temporary file in the folder of the file that path names.
func create(d disk, path string) (*partFile, error) {
	path, mode, err := d.replace(path)
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(path)
	for range 100 {
		name := filepath.Join(folder, fmt.Sprintf(".save-%08x.tmp", rand.Uint32()))
		f, err := d.create(name, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("making a temporary file: %w", err)
		}
		return &partFile{disk: d, file: f, name: name, path: path}, nil
	}
	return nil, fmt.Errorf("making a temporary file in %s: all names tried are taken", folder)
}

func (f *partFile) write(data []byte) error {
	n, err := f.file.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// commit makes the file durable and gives it its name. A context that ends
// before the name is given ends it too.
func (f *partFile) commit(ctx context.Context) error {
	if err := f.file.Sync(); err != nil {
		f.discard()
		return fmt.Errorf("syncing: %w", err)
	}
	// Some file systems report at Close what went wrong in writing.
	if err := f.file.Close(); err != nil {
		f.remove()
		return fmt.Errorf("closing: %w", err)
	}
	if ctx.Err() != nil {
		f.remove()
		return context.Cause(ctx)
	}
	if err := f.disk.rename(f.name, f.path); err != nil {
		f.remove()
		return fmt.Errorf("giving the file its name: %w", err)
	}
	if err := f.disk.syncFolder(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("the file is in place, but its name may not survive a crash: syncing the folder: %w", err)
	}
	return nil
}

// discard gives the file up. There is an error to report already.
func (f *partFile) discard() {
	_ = f.file.Close()
	f.remove()
}

func (f *partFile) remove() { _ = f.disk.remove(f.name) }

// realDisk is the file system of the machine.
type realDisk struct{}

func (realDisk) replace(path string) (string, *fs.FileMode, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		// The link stays; what it names is replaced.
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", nil, fmt.Errorf("following the link: %w", err)
		}
		info, err = os.Stat(path)
	}
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() {
		return "", nil, fmt.Errorf("%s is there and is no regular file", path)
	}
	mode := info.Mode().Perm()
	return path, &mode, nil
}

func (realDisk) create(path string, mode *fs.FileMode) (file, error) {
	at := fs.FileMode(0o666)
	if mode != nil {
		at = *mode // nobody may read more of it than of the old one
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, at)
	if err != nil {
		return nil, err
	}
	if mode != nil {
		if err := f.Chmod(at); err != nil { // the umask has taken some of it
			return nil, errors.Join(err, f.Close(), os.Remove(path))
		}
	}
	return f, nil
}

func (realDisk) rename(from, to string) error { return os.Rename(from, to) }
func (realDisk) remove(path string) error     { return os.Remove(path) }

// syncFolder makes names in a folder durable. File systems that cannot do so
// say EINVAL; Windows cannot open folders.
func (realDisk) syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
