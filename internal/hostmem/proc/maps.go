package proc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
)

// Mapping is one range of a process's addresses.
type Mapping struct {
	Start, End uint64
	Perms      string // "r-xp"
	Offset     uint64 // in the file
	Device     string // "08:01"
	Inode      uint64 // 0: no file
	Path       string // without the mark of a deleted file; "[heap]" and others for memory
	Deleted    bool   // the file has no name any more
}

// Size is the length of the range.
func (m *Mapping) Size() uint64 { return m.End - m.Start }

// Shared reports whether others see writes: a file or shared memory.
func (m *Mapping) Shared() bool { return len(m.Perms) == 4 && m.Perms[3] == 's' }

// OfDisk reports whether there is a file that others can open by name. Shared
// memory is a file of the kernel, and has no such name.
func (m *Mapping) OfDisk() bool {
	for _, kernel := range []string{"/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"} {
		if strings.HasPrefix(m.Path, kernel) {
			return false
		}
	}
	return m.Inode != 0
}

// Executable reports whether code may run there.
func (m *Mapping) Executable() bool { return len(m.Perms) == 4 && m.Perms[2] == 'x' }

// Writable reports whether the process may write there.
func (m *Mapping) Writable() bool { return len(m.Perms) == 4 && m.Perms[1] == 'w' }

// Anonymous reports whether it is private memory without a file: what malloc gets
// from the system. The brk heap is, the stack of the first thread is not.
func (m *Mapping) Anonymous() bool {
	if m.Inode != 0 || m.Shared() {
		return false
	}
	// Memory can be named with prctl: "[anon:name]".
	return m.Path == "" || m.Path == Heap || strings.HasPrefix(m.Path, "[anon")
}

// The names of the two mappings that every process has.
const (
	Heap  = "[heap]"
	Stack = "[stack]"
)

// ReadMaps reads /proc/PID/maps, in order of addresses.
func ReadMaps(pid int) ([]Mapping, error) {
	data, err := os.ReadFile(path(pid, "maps"))
	if err != nil {
		return nil, classify(pid, err)
	}
	var maps []Mapping
	for line := range bytes.Lines(data) {
		if m, ok := parseMapping(line); ok {
			maps = append(maps, m)
		}
	}
	return maps, nil
}

// Usage is a mapping with what it has in memory.
type Usage struct {
	Mapping
	Rollup
}

// ReadSmaps reads /proc/PID/smaps: every mapping with its memory.
func ReadSmaps(pid int) ([]Usage, error) {
	f, err := os.Open(path(pid, "smaps"))
	if err != nil {
		return nil, classify(pid, err)
	}
	defer f.Close()
	all, err := parseSmaps(f)
	return all, classify(pid, err)
}

func parseSmaps(r io.Reader) ([]Usage, error) {
	var all []Usage
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if m, ok := parseMapping(line); ok {
				all = append(all, Usage{Mapping: m})
			} else if len(all) > 0 {
				all[len(all)-1].line(line)
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // the rest of it is no line of ours
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
	}
}

// Sum adds up what mappings have in memory.
func Sum(all []Usage) Rollup {
	var r Rollup
	for i := range all {
		r.add(&all[i].Rollup)
	}
	return r
}

const deletedMark = " (deleted)"

// parseMapping reads "start-end perms offset device inode path".
func parseMapping(line []byte) (Mapping, bool) {
	var m Mapping
	line = bytes.TrimSuffix(line, []byte("\n"))
	var fields [5][]byte
	for i := range fields {
		line = bytes.TrimLeft(line, " ")
		word, rest, ok := bytes.Cut(line, []byte(" "))
		if !ok && i < len(fields)-1 {
			return m, false
		}
		fields[i], line = word, rest
	}
	from, to, ok := bytes.Cut(fields[0], []byte("-"))
	if !ok || len(fields[1]) != 4 {
		return m, false
	}
	var err [4]error
	m.Start, err[0] = strconv.ParseUint(string(from), 16, 64)
	m.End, err[1] = strconv.ParseUint(string(to), 16, 64)
	m.Offset, err[2] = strconv.ParseUint(string(fields[2]), 16, 64)
	m.Inode, err[3] = strconv.ParseUint(string(fields[4]), 10, 64)
	if errors.Join(err[:]...) != nil || m.End < m.Start {
		return m, false
	}
	m.Perms, m.Device = string(fields[1]), string(fields[3])
	m.Path = string(bytes.TrimLeft(line, " "))
	if m.Inode != 0 {
		m.Path, m.Deleted = strings.CutSuffix(m.Path, deletedMark)
		m.Path = unescape(m.Path)
	}
	return m, true
}

// unescape undoes the kernel's writing of a newline in a name.
func unescape(s string) string { return strings.ReplaceAll(s, `\012`, "\n") }
