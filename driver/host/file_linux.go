package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// openMemory makes a file that is nothing but memory.
func openMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("ashlar", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "memory"), nil
}

// punchFile gives the memory of a part of the file back, as far as the system can:
// what it cannot is used again with the bytes that it has.
func punchFile(f *os.File, offset int64, size uint64) {
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, int64(size))
}
