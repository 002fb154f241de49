//go:build unix

package hub

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reserve is how much of the disk stays free. A server that cannot write what it
// has promised gives up; it is not brought to that.
const reserve = 64 << 20

// room returns an error if the disk of the folder is full.
func (h *Hub) room() error {
	if h.options.Dir == "" {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(h.options.Dir, &st); err != nil {
		return err
	}
	if free := uint64(st.Bavail) * uint64(st.Bsize); free < reserve {
		return fmt.Errorf("%w: %s has %d MiB left, and %d MiB are kept free; free some, or choose another --dir", ErrFull, h.options.Dir, free>>20, reserve>>20)
	}
	return nil
}

// fileLimit returns an error if this process may make small files only: the server would wait for itself.
func (h *Hub) fileLimit() error {
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &most); err == nil && uint64(most.Cur) < reserve && h.Owner() {
		return fmt.Errorf("the store %s needs files of up to %d MiB, and this process may make none above %d bytes: raise the limit (ulimit -f)", h.options.Dir, reserve>>20, most.Cur)
	}
	return nil
}
