package atomicfile

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// canBeNameless is false in tests of file systems whose files must have names.
var canBeNameless = true

// createNameless opens a file without a name, which is gone when the process ends,
// however it does. It returns nil where that cannot be.
func createNameless(dir string) *os.File {
	if !canBeNameless {
		return nil
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	if _, err := os.Readlink(descriptor(f)); err != nil { // no /proc to link it from
		f.Close()
		return nil
	}
	lock(f)
	return f
}

func descriptor(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// link gives a nameless file a name.
func link(f *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, descriptor(f), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

// lock marks a file as being written until it is closed. Where files cannot be
// locked, none is ever taken for stale.
func lock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// staleAge is how old a hidden file must be to be stale: it is not locked for a
// moment after its creation and before its rename.
const staleAge = time.Minute

// removeStale removes the hidden files of processes that were killed: nobody has
// them locked.
func removeStale(dir string) {
	entries, _ := os.ReadDir(dir) // as far as it can be read
	for _, e := range entries {
		if ok, _ := filepath.Match(partPattern, e.Name()); !ok {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < staleAge {
			continue
		}
		part := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(part, os.O_WRONLY, 0) // NFS locks nothing that is open for reading
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			os.Remove(part)
		}
		f.Close()
	}
}
