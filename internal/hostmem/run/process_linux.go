package run

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownGroup has a command lead a process group, and die with this program.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// inGroup has a command join a process group.
func inGroup(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group}
}

// awaitEnd waits until a child has ended, without collecting it. It reports
// whether the child succeeded.
func awaitEnd(pid int) bool {
	const byItself = 1 // CLD_EXITED
	info, err := await(pid, syscall.WEXITED)
	return err == nil && info.code == byItself && info.status == 0
}

// await waits for changes of a child, and leaves them to be waited for again.
func await(pid, changes int) (childInfo, error) {
	const idPID = 1
	var info childInfo
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), uintptr(changes|syscall.WNOWAIT), 0, 0)
		if errno == 0 {
			return info, nil
		}
		if !errors.Is(errno, syscall.EINTR) {
			return info, errno
		}
	}
}

// childInfo is the kernel's siginfo_t about a child.
type childInfo struct {
	signal, errno, code int32
	_                   [0]uintptr // what follows is aligned as a pointer
	pid, user, status   int32
	_                   [128]byte // more than the rest
}

// holdAtStart has a command stop before its first instruction, as one does that
// is debugged. A program that gains rights when it starts would not get them
// then: it is not held.
func holdAtStart(cmd *exec.Cmd) bool {
	name := cmd.Path
	if !filepath.IsAbs(name) {
		name = filepath.Join(cmd.Dir, name)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return false
	}
	if _, err := unix.Getxattr(name, "security.capability", nil); err == nil {
		return false
	}
	cmd.SysProcAttr.Ptrace = true
	return true
}

// letStart lets a command go on that is held. Only the thread that has started it
// can.
func letStart(pid int) {
	await(pid, syscall.WSTOPPED|syscall.WEXITED) // either is fine
	syscall.PtraceDetach(pid)                    // it was killed: fine
}

// signalGroup signals all processes of a group. Stopped ones are woken, so that
// they can follow.
func signalGroup(group int, signal syscall.Signal) {
	syscall.Kill(-group, signal) // none is there any more: fine
	if signal == syscall.SIGTERM {
		syscall.Kill(-group, syscall.SIGCONT)
	}
}

// ownMaxRSS is that of this program. A child counts it as its own until it has
// more: it began as a copy.
func ownMaxRSS() uint64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return totalsOf(&u).maxRSS
}
