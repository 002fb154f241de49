package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup has the child die with its parent, and keeps the signals of a terminal
// from it: the parent ends it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// firstToGo has the kernel kill the child, and not its parent, when the machine
// runs out of memory.
func firstToGo(pid int) {
	os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0) // a wish
}

// residentBytes is how much memory a process has; 0 if that cannot be told.
func residentBytes(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// nameless opens a file that never has a name, and returns a path that leads to it as long as it is open; nil where that cannot be.
func nameless(dir string) (f *os.File, path string) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, ""
	}
	path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	f = os.NewFile(uintptr(fd), dir)
	if _, err := os.Stat(path); err != nil { // there is no /proc
		f.Close()
		return nil, ""
	}
	return f, path
}

// withoutName takes the name of an open file away, so that nothing stays behind
// whatever becomes of this process, and returns a path that leads to it as long as
// it is open.
func withoutName(f *os.File) (path string) {
	path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
	if _, err := os.Stat(path); err != nil || os.Remove(f.Name()) != nil { // there is no /proc
		return f.Name()
	}
	return path
}
