package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

var (
	// ErrNoProcess says that there is no such process, or none any more.
	ErrNoProcess = errors.New("no such process")
	// ErrPermission says that this user may not look into the process.
	ErrPermission = errors.New("no permission to look into the process")
)

// classify words an error of a file below /proc/PID.
func classify(pid int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("process %d: %w", pid, ErrPermission)
	}
	return fmt.Errorf("process %d: %w", pid, err)
}
