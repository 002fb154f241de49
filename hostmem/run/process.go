package run

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/ashlar-mem/ashlar/hostmem/proc"
)

// process is a command in a process group of its own.
type process struct {
	cmd       *exec.Cmd
	group     int
	ended     chan struct{} // closed when the first process of the group has ended
	release   chan struct{} // closed to have it collected
	collected chan struct{}
}

// startProcess starts a command. Without an input it has an empty one.
func startProcess(argv, environ []string, dir string, in, out *os.File) (*process, error) {
	p := &process{
		cmd:       exec.Command(argv[0], argv[1:]...),
		ended:     make(chan struct{}),
		release:   make(chan struct{}),
		collected: make(chan struct{}),
	}
	p.cmd.Env, p.cmd.Dir = environ, dir
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if in != nil {
		p.cmd.Stdin = in
	}
	p.cmd.SysProcAttr = ownGroup()
	started := make(chan error, 1)
	go p.live(started)
	if err := <-started; err != nil {
		return nil, err
	}
	p.group = p.cmd.Process.Pid
	return p, nil
}

// live starts the command and waits for it. If this program is killed, the
// kernel kills the command when the thread that started it is gone: so this
// thread has to stay, and does nothing else.
func (p *process) live(started chan<- error) {
	runtime.LockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	awaitEnd(p.cmd.Process.Pid)
	close(p.ended)
	// Until it is collected, its number, which is also that of the group,
	// cannot become another's.
	<-p.release
	p.cmd.Wait() // how it ended is in ProcessState
	close(p.collected)
}

// killedWithin is how long processes may take to be gone after SIGKILL.
const killedWithin = 5 * time.Second

// finish ends what is left of the group and collects the first process. It
// tells whether anything had to be ended, and whether SIGTERM was ignored.
func (p *process) finish(grace time.Duration) (terminated, killed bool) {
	if len(proc.Group(p.group)) > 0 {
		terminated = true
		signalGroup(p.group, syscall.SIGTERM)
		if !p.goneWithin(grace) {
			killed = true
			signalGroup(p.group, syscall.SIGKILL)
			p.goneWithin(killedWithin)
		}
	}
	if len(proc.Group(p.group)) == 0 {
		close(p.release)
		<-p.collected
	}
	return terminated, killed
}

// goneWithin waits until no process of the group runs.
func (p *process) goneWithin(d time.Duration) bool {
	pause := 5 * time.Millisecond
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pause) {
		if len(proc.Group(p.group)) == 0 {
			return true
		}
		pause = min(2*pause, 100*time.Millisecond)
	}
	return len(proc.Group(p.group)) == 0
}

// usage is what the kernel counted for the first process and all that it waited
// for; nil if it was not collected.
func (p *process) usage() *syscall.Rusage {
	if p.cmd.ProcessState == nil {
		return nil
	}
	u, _ := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return u
}

// signalName names the signal that ended a process: "segmentation fault".
func signalName(state *os.ProcessState) string {
	if s, ok := state.Sys().(syscall.WaitStatus); ok {
		return s.Signal().String()
	}
	return "unknown"
}
