package run

import (
	"errors"
	"syscall"
	"unsafe"
)

// ownGroup has a command lead a process group, and die with this program.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitEnd waits until a child has ended, without collecting it.
func awaitEnd(pid int) {
	const (
		idPID   = 1
		exited  = 0x4
		nowWait = 0x1000000 // leave it to be waited for again
	)
	var info [128]byte // a siginfo_t, of no interest
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), exited|nowWait, 0, 0)
		if !errors.Is(errno, syscall.EINTR) {
			return
		}
	}
}

// signalGroup signals all processes of a group. Stopped ones are woken, so that
// they can follow.
func signalGroup(group int, signal syscall.Signal) {
	syscall.Kill(-group, signal) // none is there any more: fine
	if signal == syscall.SIGTERM {
		syscall.Kill(-group, syscall.SIGCONT)
	}
}

// maxRSS is the largest memory of one process, in bytes.
func maxRSS(u *syscall.Rusage) uint64 { return uint64(u.Maxrss) << 10 }

// ownMaxRSS is that of this program. A child counts it as its own until it has
// more: it began as a copy.
func ownMaxRSS() uint64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return maxRSS(&u)
}
