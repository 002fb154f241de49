package detect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// child is a command that was started to be looked into. It is traced, for two
// things only: to hold it when it is about to end, with its memory still there,
// and to have the kernel end it should we be killed.
type child struct {
	pid     int
	mark    string   // the entry of its environment by which descendants are known
	stderr  *os.File // what it says
	started time.Time
	execs   atomic.Int64

	exiting chan struct{} // closed when it is held at its end
	resume  chan struct{} // closed to let it go
	release sync.Once
	done    chan struct{} // closed when it has ended; then there are:
	status  syscall.WaitStatus
	ended   time.Time
}

// Of linux/ptrace.h; the package syscall does not have the first.
const (
	traceExitKill = 0x100000
	traceOptions  = traceExitKill | syscall.PTRACE_O_TRACEEXEC | syscall.PTRACE_O_TRACEEXIT
	waitAll       = 0x40000000
)

func startChild(argv []string) (*child, error) {
	stderr, err := os.CreateTemp("", "ashlar-detect-*")
	if err != nil {
		return nil, err
	}
	os.Remove(stderr.Name()) // it needs no name
	c := &child{
		mark: newMark(), stderr: stderr,
		exiting: make(chan struct{}), resume: make(chan struct{}), done: make(chan struct{}),
	}
	started := make(chan error, 1)
	go c.live(argv, started)
	if err := <-started; err != nil {
		stderr.Close()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("there is no command %s", argv[0])
		}
		return nil, fmt.Errorf("%s cannot be started: %w", argv[0], err)
	}
	return c, nil
}

// live starts the command and follows it to its end. Only the thread that has
// started it may trace it, so this one stays.
func (c *child) live(argv []string, started chan<- error) {
	runtime.LockOSThread()
	cmd, traced, err := c.start(argv)
	if err != nil {
		started <- err
		return
	}
	c.pid, c.started = cmd.Process.Pid, time.Now()
	started <- nil
	c.follow(traced)
	c.ended = time.Now()
	cmd.Process.Release()
	close(c.done)
}

// start starts the command traced or, where that is forbidden, not.
func (c *child) start(argv []string) (cmd *exec.Cmd, traced bool, err error) {
	for _, traced := range []bool{true, false} {
		cmd = exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), c.mark)
		cmd.Stderr = c.stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Ptrace: traced, Pdeathsig: syscall.SIGKILL}
		if err = cmd.Start(); err == nil {
			return cmd, traced, nil
		}
		if !errors.Is(err, syscall.EPERM) {
			break
		}
	}
	return nil, false, err
}

// follow passes on what happens to the command until it has ended.
func (c *child) follow(traced bool) {
	first := traced // the stop after the first exec
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.pid, &status, waitAll, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		if !status.Stopped() {
			c.status = status
			return
		}
		signal := 0
		switch cause := status.TrapCause(); {
		case first:
			first = false
			syscall.PtraceSetOptions(c.pid, traceOptions) // without them only short commands are missed
		case cause == syscall.PTRACE_EVENT_EXIT:
			close(c.exiting)
			<-c.resume
		case cause == syscall.PTRACE_EVENT_EXEC:
			c.execs.Add(1)
		default:
			signal = int(status.StopSignal())
		}
		syscall.PtraceCont(c.pid, signal) // killed meanwhile: the next turn says so
	}
}

// letGo lets the command end.
func (c *child) letGo() { c.release.Do(func() { close(c.resume) }) }

func (c *child) isExiting() bool {
	select {
	case <-c.exiting:
		return true
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *child) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
