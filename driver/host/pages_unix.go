//go:build unix

package host

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapPages gets addresses for size bytes, a multiple of page, that begin at a
// multiple of page as those of a GPU do. Without access they hold no memory.
func mapPages(size uint64, access bool) ([]byte, error) {
	prot := unix.PROT_NONE
	if access {
		prot = unix.PROT_READ | unix.PROT_WRITE
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size+page), prot, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	all := unsafe.Slice((*byte)(p), size+page)
	before := roundUp(uint64(uintptr(p)), page) - uint64(uintptr(p))
	mem, after := all[before:before+size:before+size], all[before+size:]
	// What sticks out is given back; if that fails nothing but addresses is lost.
	if before > 0 {
		_ = unmapPages(all[:before])
	}
	if len(after) > 0 {
		_ = unmapPages(after)
	}
	return mem, nil
}

// unmapPages gives addresses back, and the memory behind them.
func unmapPages(mem []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)))
}

// openPages gives access to addresses that have none.
func openPages(mem []byte) error {
	return unix.Mprotect(mem, unix.PROT_READ|unix.PROT_WRITE)
}

// closePages takes access and memory away: fresh pages without access take
// their place.
func closePages(mem []byte) error {
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
	return err
}

// mapFile puts a part of a file behind addresses, without access.
func mapFile(mem []byte, f *os.File, offset int64) error {
	_, err := unix.MmapPtr(int(f.Fd()), offset, unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)), unix.PROT_NONE,
		unix.MAP_SHARED|unix.MAP_FIXED)
	return err
}
