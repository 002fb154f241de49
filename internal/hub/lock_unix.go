//go:build unix

package hub

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// tryLock locks a file until it is closed or the process ends. It returns nil if
// another process has the lock.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("%s cannot be locked: %w", path, err)
}
