package detect

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// image is an ELF object as the dynamic loader sees it: program headers and
// what the dynamic section points to. Section headers are not needed, so a
// stripped file and a copy in memory read alike.
type image struct {
	space   io.ReaderAt // by the addresses that the file gives
	order   binary.ByteOrder
	kind    elf.Type
	machine elf.Machine
	loads   []elf.Prog64
	interp  string // the dynamic loader; empty for a static program
	dynAddr uint64
	dynSize uint64
	dyn     map[elf.DynTag]uint64
	needed  []string // names of libraries it was linked with
	soname  string
	// Addresses in the dynamic section are those of the process: the loader
	// of glibc writes them back.
	bias uint64
}

var (
	errNotELF = errors.New("no ELF file")
	errClass  = errors.New("a 32-bit program")
)

// Limits on what one file or process can make us read.
const (
	maxHeaders = 512
	maxTable   = 256 << 20
	maxDynamic = 1 << 20
	maxString  = 4096
)

// newImageOfFile reads an object from its file.
func newImageOfFile(f io.ReaderAt) (*image, error) {
	m := &image{}
	if err := m.readHeaders(f, 0); err != nil {
		return nil, err
	}
	m.space = fileSpace{f, m.loads}
	return m, m.readDynamic()
}

// newImageOfMemory reads an object from a process that has it at base.
func newImageOfMemory(mem io.ReaderAt, base uint64) (*image, error) {
	m := &image{}
	if err := m.readHeaders(mem, base); err != nil {
		return nil, err
	}
	m.bias = m.biasAt(base)
	m.space = memorySpace{mem, m.bias}
	return m, m.readDynamic()
}

// biasAt is what is added to the addresses of the file where its first byte
// lies at base.
func (m *image) biasAt(base uint64) uint64 {
	return base - (m.loads[0].Vaddr - m.loads[0].Off)
}

// extent is the range of addresses that the object covers, without the bias.
func (m *image) extent() (low, high uint64) {
	low = m.loads[0].Vaddr
	for _, l := range m.loads {
		low, high = min(low, l.Vaddr), max(high, l.Vaddr+l.Memsz)
	}
	return low, high
}

func (m *image) readHeaders(r io.ReaderAt, base uint64) error {
	var ident [elf.EI_NIDENT]byte
	if err := readFull(r, ident[:], base); err != nil || string(ident[:4]) != elf.ELFMAG {
		return errNotELF
	}
	if elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return errClass
	}
	m.order = binary.LittleEndian
	if elf.Data(ident[elf.EI_DATA]) == elf.ELFDATA2MSB {
		m.order = binary.BigEndian
	}
	var head elf.Header64
	if err := m.decode(r, base, &head); err != nil {
		return errNotELF
	}
	m.kind, m.machine = elf.Type(head.Type), elf.Machine(head.Machine)
	if head.Phnum == 0 || head.Phnum > maxHeaders || int(head.Phentsize) != binary.Size(elf.Prog64{}) {
		return errNotELF
	}
	progs := make([]elf.Prog64, head.Phnum)
	if err := m.decode(r, base+head.Phoff, progs); err != nil {
		return errNotELF
	}
	for _, p := range progs {
		switch elf.ProgType(p.Type) {
		case elf.PT_LOAD:
			m.loads = append(m.loads, p)
		case elf.PT_DYNAMIC:
			m.dynAddr, m.dynSize = p.Vaddr, p.Memsz
		case elf.PT_INTERP:
			name := make([]byte, min(p.Filesz, maxString))
			if err := readFull(r, name, base+p.Off); err == nil {
				m.interp = string(bytes.TrimRight(name, "\x00"))
			}
		}
	}
	if len(m.loads) == 0 {
		return errNotELF
	}
	return nil
}

func (m *image) readDynamic() error {
	m.dyn = map[elf.DynTag]uint64{}
	if m.dynAddr == 0 || m.dynSize > maxDynamic {
		return nil
	}
	entries := make([]elf.Dyn64, m.dynSize/16)
	if err := m.decode(m.space, m.dynAddr, entries); err != nil {
		return fmt.Errorf("its dynamic section cannot be read: %w", err)
	}
	var needed []uint64
	for _, e := range entries {
		tag := elf.DynTag(e.Tag)
		if tag == elf.DT_NULL {
			break
		}
		if tag == elf.DT_NEEDED {
			needed = append(needed, e.Val)
			continue
		}
		m.dyn[tag] = e.Val
	}
	for _, n := range needed {
		if s := m.text(n); s != "" {
			m.needed = append(m.needed, s)
		}
	}
	if n, ok := m.dyn[elf.DT_SONAME]; ok {
		m.soname = m.text(n)
	}
	return nil
}

// address is where a table of the dynamic section is.
func (m *image) address(tag elf.DynTag) (uint64, bool) {
	v, ok := m.dyn[tag]
	if m.bias != 0 && v >= m.bias {
		v -= m.bias
	}
	return v, ok && v != 0
}

// text reads a name out of the string table.
func (m *image) text(offset uint64) string {
	table, ok := m.address(elf.DT_STRTAB)
	if !ok || offset >= m.dyn[elf.DT_STRSZ] {
		return ""
	}
	return m.cstring(table + offset)
}

// cstring reads a string that a zero ends.
func (m *image) cstring(address uint64) string {
	var buf [256]byte
	var s []byte
	for len(s) < maxString {
		n, err := m.space.ReadAt(buf[:], int64(address)+int64(len(s)))
		if i := bytes.IndexByte(buf[:n], 0); i >= 0 {
			return string(append(s, buf[:i]...))
		}
		s = append(s, buf[:n]...)
		if err != nil || n == 0 {
			break
		}
	}
	return ""
}

// decode reads fixed-size data at an address.
func (m *image) decode(r io.ReaderAt, address uint64, data any) error {
	buf := make([]byte, binary.Size(data))
	if err := readFull(r, buf, address); err != nil {
		return err
	}
	_, err := binary.Decode(buf, m.order, data)
	return err
}

// table reads a table of some size. It grows with what is really there, since
// the size may be a lie.
func (m *image) table(address, size uint64) ([]byte, error) {
	if size > maxTable {
		return nil, fmt.Errorf("a table of %d bytes is too large", size)
	}
	data, err := io.ReadAll(io.NewSectionReader(m.space, int64(address), int64(size)))
	if err == nil && uint64(len(data)) < size {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

func readFull(r io.ReaderAt, p []byte, at uint64) error {
	n, err := r.ReadAt(p, int64(at))
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// fileSpace finds an address in the file that is loaded there.
type fileSpace struct {
	file  io.ReaderAt
	loads []elf.Prog64
}

func (s fileSpace) ReadAt(p []byte, address int64) (int, error) {
	for _, l := range s.loads {
		if a := uint64(address); a >= l.Vaddr && a < l.Vaddr+l.Filesz {
			left := l.Vaddr + l.Filesz - a
			short := uint64(len(p)) > left
			if short {
				p = p[:left]
			}
			n, err := s.file.ReadAt(p, int64(l.Off+a-l.Vaddr))
			if err == nil && short {
				err = io.EOF
			}
			return n, err
		}
	}
	return 0, io.ErrUnexpectedEOF
}

// memorySpace finds an address of the file in a process.
type memorySpace struct {
	mem  io.ReaderAt
	bias uint64
}

func (s memorySpace) ReadAt(p []byte, address int64) (int, error) {
	return s.mem.ReadAt(p, int64(uint64(address)+s.bias))
}
