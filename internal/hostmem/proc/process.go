package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Executable is the path of the program a process runs, as the process sees
// it. A kernel thread has none: fs.ErrNotExist.
func Executable(pid int) (name string, deleted bool, err error) {
	name, err = os.Readlink(path(pid, "exe"))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			// One that is ending has no program either, while its files are still there.
			if stat, err := ReadStat(pid); err == nil && stat.Kernel {
				return "", false, fmt.Errorf("process %d has no program: %w", pid, fs.ErrNotExist)
			}
		}
		return "", false, classify(pid, err)
	}
	name, deleted = strings.CutSuffix(name, deletedMark)
	return name, deleted, nil
}

// OpenExecutable opens the program of a process, even if its file was removed.
func OpenExecutable(pid int) (*os.File, error) {
	f, err := os.Open(path(pid, "exe"))
	return f, classify(pid, err)
}

// OpenFile opens a file by the name it has for the process, whose root may be
// that of a container.
func OpenFile(pid int, name string) (*os.File, error) {
	real, err := resolve(pid, name)
	if err != nil {
		return nil, err
	}
	return os.Open(real)
}

// ReadLink reads a symbolic link by the name it has for the process.
func ReadLink(pid int, name string) (string, error) {
	dir, err := resolve(pid, filepath.Dir(name))
	if err != nil {
		return "", err
	}
	return os.Readlink(filepath.Join(dir, filepath.Base(name)))
}

const maxLinks = 40

// resolve follows the links of a name as the process would: the kernel follows
// those that begin with a slash from our root, not from that of a container.
func resolve(pid int, name string) (string, error) {
	root, dir := path(pid, "root"), path(pid, "root")
	if !filepath.IsAbs(name) {
		dir = path(pid, "cwd")
	}
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if dir != root {
				dir += "/.." // the kernel knows where that is
			}
			continue
		}
		next := dir + "/" + part
		target, err := os.Readlink(next)
		if err != nil { // no link
			dir = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: %w", name, syscall.ELOOP)
		}
		if filepath.IsAbs(target) {
			dir = root
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return dir, nil
}

// OpenMapped opens the file behind a mapping: by its name, if it still is that
// file, else through the kernel's own link, which only root may use.
func OpenMapped(pid int, m *Mapping) (*os.File, error) {
	if !m.Deleted {
		f, err := OpenFile(pid, m.Path)
		if err == nil {
			if info, err := f.Stat(); err == nil && inode(info) == m.Inode {
				return f, nil
			}
			f.Close()
		}
	}
	f, err := os.Open(path(pid, fmt.Sprintf("map_files/%x-%x", m.Start, m.End)))
	return f, classify(pid, err)
}

// Arguments are the words of the command line.
func Arguments(pid int) ([]string, error) {
	return words(pid, "cmdline")
}

// Environ is the environment that the process was started with, as
// "NAME=value". What it has changed since is not seen.
func Environ(pid int) ([]string, error) {
	return words(pid, "environ")
}

func words(pid int, name string) ([]string, error) {
	data, err := os.ReadFile(path(pid, name))
	if err != nil {
		return nil, classify(pid, err)
	}
	data = bytes.TrimRight(data, "\x00")
	if len(data) == 0 {
		return []string{}, nil
	}
	return strings.Split(string(data), "\x00"), nil
}

// ThreadName is the name of one thread.
func ThreadName(pid, tid int) string {
	data, err := os.ReadFile(path(pid, "task/"+strconv.Itoa(tid)+"/comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}

// Memory is the memory of a process, by address. Reading a page that is not in
// memory brings it there.
type Memory struct {
	file *os.File
}

// OpenMemory opens the memory of a process. That takes more rights than
// reading its maps: where the kernel restricts ptrace, only those of an
// ancestor or of root do.
func OpenMemory(pid int) (*Memory, error) {
	f, err := os.Open(path(pid, "mem"))
	if err != nil {
		return nil, classify(pid, err)
	}
	return &Memory{f}, nil
}

// Close releases the file.
func (m *Memory) Close() error { return m.file.Close() }

// ReadAt reads memory at an address; it implements [io.ReaderAt].
func (m *Memory) ReadAt(p []byte, address int64) (int, error) {
	n, err := m.file.ReadAt(p, address)
	if errors.Is(err, syscall.EIO) { // nothing is mapped there
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Word reads a pointer of a process with the byte order of this machine.
func (m *Memory) Word(address uint64) (uint64, error) {
	var b [8]byte
	if _, err := m.ReadAt(b[:], int64(address)); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

// LivingThread is a thread of a process that has not ended; 0 if there is none.
// The first thread may end before the others. The kernel then shows nothing
// under the number of the process, but all of it under that of another thread.
func LivingThread(pid int) int {
	tasks, err := Threads(pid)
	if err != nil {
		return 0
	}
	for _, tid := range tasks {
		if s, err := ReadStat(tid); err == nil && !s.Ended() {
			return tid
		}
	}
	return 0
}

// Root is the directory that a process has for its root, as we see it; empty if
// that is our own.
func Root(pid int) string {
	root, err := os.Readlink(path(pid, "root"))
	if err != nil || root == "/" {
		return ""
	}
	return root
}

// Inside gives a name, as /proc shows it to us, as a process sees it that has a
// root of its own.
func Inside(root, name string) string {
	if inside, ok := strings.CutPrefix(name, root+"/"); ok && root != "" {
		return "/" + inside
	}
	return name
}

// Directory is the one that a process works in, as it sees it.
func Directory(pid int) (string, error) {
	dir, err := os.Readlink(path(pid, "cwd"))
	if err != nil {
		return "", classify(pid, err)
	}
	return Inside(Root(pid), strings.TrimSuffix(dir, deletedMark)), nil
}
