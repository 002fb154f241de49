package run

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// subreaper counts who wants the orphans of this program's descendants. The
// kernel has one flag for the whole program: so there is one count.
var subreaper struct {
	sync.Mutex
	holders int
	before  int32 // the flag, as it was
}

// holdOrphans has orphans come to this program until they are released. It is
// false if they do not. To the first process of a container they come anyway, with
// everybody's: those of a command are known by their mark.
func holdOrphans() (release func(), ok bool) {
	subreaper.Lock()
	defer subreaper.Unlock()
	if subreaper.holders == 0 {
		if unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper.before)), 0, 0, 0) != nil ||
			unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
			return nil, false
		}
	}
	subreaper.holders++
	return sync.OnceFunc(func() {
		subreaper.Lock()
		defer subreaper.Unlock()
		if subreaper.holders--; subreaper.holders == 0 {
			unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(subreaper.before), 0, 0, 0) // it could be set: it can be set back
		}
	}), true
}

// mark is a number by which the descendants of a command are known. It is a
// resource limit: that is inherited for ever, also by those that clear their
// environment or write their title over it. The limit, of the time that a thread
// with real-time priority may take without a pause, is set to many thousand years.
type mark uint64

const limitRealTime = 15 // RLIMIT_RTTIME, in microseconds

// newMark marks a process that has just begun.
func newMark(pid int) (mark, bool) {
	m := mark(1<<61 + rand.Uint64N(1<<61))
	var limit unix.Rlimit
	if unix.Prlimit(pid, limitRealTime, nil, &limit) != nil || limit.Max < uint64(m) {
		return 0, false
	}
	limit.Cur = uint64(m)
	return m, unix.Prlimit(pid, limitRealTime, &limit, nil) == nil
}

// on reports whether a process has the mark, also one that waits to be collected.
func (m mark) on(pid int) bool {
	var limit unix.Rlimit
	return unix.Prlimit(pid, limitRealTime, nil, &limit) == nil && limit.Cur == uint64(m)
}

// collectChild collects one child of this program that has ended.
func collectChild(pid int) (*Exit, totals, bool) {
	var status syscall.WaitStatus
	var u syscall.Rusage
	if got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, &u); err != nil || got != pid {
		return nil, totals{}, false
	}
	exit := &Exit{Code: status.ExitStatus()} // -1 after a signal
	if status.Signaled() {
		exit.Signal = status.Signal().String()
	}
	return exit, totalsOf(&u), true
}

func totalsOf(u *syscall.Rusage) totals {
	return totals{
		cpu:      time.Duration(u.Utime.Nano() + u.Stime.Nano()),
		faults:   uint64(u.Minflt + u.Majflt),
		switches: uint64(u.Nvcsw + u.Nivcsw),
		maxRSS:   uint64(u.Maxrss) << 10,
	}
}

// signalDescendant signals a process if it is still the one that was seen, and
// still descends from this program. The descriptor means one process for ever:
// once it is known to be the right one, no other can be hit.
func signalDescendant(s *proc.Stat, signal syscall.Signal) bool {
	fd, err := unix.PidfdOpen(s.PID, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	now, err := proc.ReadStat(s.PID)
	if err != nil || now.Start != s.Start || !descends(now) {
		return false
	}
	if unix.PidfdSendSignal(fd, signal, nil, 0) != nil {
		return false
	}
	if signal == syscall.SIGTERM {
		unix.PidfdSendSignal(fd, syscall.SIGCONT, nil, 0) // what is stopped cannot follow
	}
	return true
}
