package detect

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// target is a process being looked into.
type target struct {
	pid     int
	state   byte // as in [proc.Stat]
	maps    []proc.Mapping
	mem     *proc.Memory // nil if it may not be read
	env     []string
	program *object   // what it runs
	objects []*object // in order of addresses
	// order is the loader's list of objects, in which it looks for symbols;
	// nil if it cannot be read.
	order []*object
	// loading is set while the loader is at work.
	loading bool
	// unread is set if some objects cannot be read: their files were removed, and
	// we may read neither the memory nor the files without names.
	unread bool
}

// object is an ELF file in a process.
type object struct {
	*image
	path      string // as the process sees it
	loaded    string // the name by which the loader opened it; empty for the program
	deleted   bool
	base      uint64 // where its first byte is
	bias      uint64 // what is added to the addresses of the file
	low, high uint64 // the addresses it covers
	file      *os.File

	symbols     map[string]uint64 // what strip removes, once it was read
	symbolsRead bool
	texts       []string // the allocators of which it has texts, once it was read
	textsRead   bool
}

func (o *object) name() string { return filepath.Base(o.path) }

func (o *object) covers(address uint64) bool { return address >= o.low && address < o.high }

// content is the whole object to be searched: its file, or what is in memory.
func (o *object) content() []section {
	if o.file != nil {
		if info, err := o.file.Stat(); err == nil {
			return []section{{o.file, 0, uint64(info.Size())}}
		}
	}
	var all []section
	for _, l := range o.loads {
		all = append(all, section{o.space, l.Vaddr, l.Filesz})
	}
	return all
}

// section is a stretch of bytes.
type section struct {
	r        io.ReaderAt
	at, size uint64
}

// attach reads maps and objects of a process. Without the right to read its
// memory the objects are read from their files alone.
func attach(pid int, withMemory bool) (*target, error) {
	maps, err := proc.ReadMaps(pid)
	if err != nil {
		return nil, err
	}
	if len(maps) == 0 {
		return nil, ended(pid)
	}
	root := proc.Root(pid)
	for i := range maps {
		if maps[i].Inode != 0 {
			maps[i].Path = proc.Inside(root, maps[i].Path)
		}
	}
	t := &target{pid: pid, maps: maps}
	env, err := proc.Environ(pid)
	if err != nil {
		return nil, err
	}
	t.env = joinTunables(env)
	if withMemory {
		t.mem, err = proc.OpenMemory(pid)
		if err != nil && !errors.Is(err, proc.ErrPermission) {
			return nil, err
		}
	}
	t.findObjects()
	if err := t.findProgram(); err != nil {
		t.close()
		return nil, err
	}
	if t.mem != nil {
		t.readLinkMap()
	}
	return t, nil
}

func (t *target) close() {
	for _, o := range t.objects {
		if o.file != nil {
			o.file.Close()
		}
	}
	if t.mem != nil {
		t.mem.Close()
	}
}

// findObjects makes objects of the files that are mapped with their first byte
// and have code.
func (t *target) findObjects() {
	var last *object
	for i := range t.maps {
		m := &t.maps[i]
		if m.Inode == 0 || m.Offset != 0 || last != nil && m.Start < last.high || !t.hasCode(i) {
			continue
		}
		if o := t.open(m); o != nil {
			t.objects = append(t.objects, o)
			last = o
		} else if m.Deleted {
			t.unread = true
		}
	}
}

// hasCode reports whether the file of a mapping has code there or in one of the
// mappings that follow: what is mapped as data is no object.
func (t *target) hasCode(i int) bool {
	first := t.maps[i]
	for ; i < len(t.maps); i++ {
		m := &t.maps[i]
		if m.Inode == 0 {
			continue // zeroed data between two of them
		}
		if m.Inode != first.Inode || m.Device != first.Device {
			return false
		}
		if m.Executable() {
			return true
		}
	}
	return false
}

// open reads an object from its file, which costs the process nothing, or from
// memory if the file is gone or another one.
func (t *target) open(m *proc.Mapping) *object {
	o := &object{path: m.Path, deleted: m.Deleted, base: m.Start}
	if f, err := proc.OpenMapped(t.pid, m); err == nil {
		if o.image, err = newImageOfFile(f); err == nil {
			o.file = f
		} else {
			f.Close()
		}
	}
	if o.image == nil && t.mem != nil {
		o.image, _ = newImageOfMemory(t.mem, m.Start) // without it there is no object
	}
	if o.image == nil {
		return nil
	}
	o.bias = o.biasAt(m.Start)
	low, high := o.extent()
	o.low, o.high = low+o.bias, high+o.bias
	return o
}

// objectAt is the object that covers an address.
func (t *target) objectAt(address uint64) *object {
	for _, o := range t.objects {
		if o.covers(address) {
			return o
		}
	}
	return nil
}

// findProgram finds the object of the executable.
func (t *target) findProgram() error {
	f, err := proc.OpenExecutable(t.pid)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, o := range t.objects {
		if o.file != nil && sameFile(o.file, f) {
			t.program = o
			return nil
		}
	}
	// Its file has no name any more, or it is not laid out as usual.
	path, err := executable(t.pid)
	if err != nil {
		return err
	}
	for _, o := range t.objects {
		if o.path == path {
			t.program = o
			return nil
		}
	}
	return nil
}

// executable is the path of the program, as the process sees it.
func executable(pid int) (string, error) {
	path, _, err := proc.Executable(pid)
	if err != nil {
		return "", err
	}
	return proc.Inside(proc.Root(pid), path), nil
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}
