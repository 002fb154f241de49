package run

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// process is a command in a process group of its own.
type process struct {
	cmd       *exec.Cmd
	group     int
	tree      *processTree  // its descendants; nil: orphans among them are not seen
	guard     *guard        // ends the group if this program cannot
	ended     chan struct{} // closed when the first process of the group has ended
	success   bool          // it ended with success
	release   chan struct{} // closed to collect it
	collected chan struct{}
}

// startProcess starts a command; a nil in is an empty input. The descendants of
// an adopted command are known wherever they go.
func startProcess(argv, environ []string, dir string, in, out *os.File, adopted bool) (*process, error) {
	p := &process{
		ended:     make(chan struct{}),
		release:   make(chan struct{}),
		collected: make(chan struct{}),
	}
	newCommand := func() *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env, cmd.Dir = environ, dir
		cmd.Stdout, cmd.Stderr = out, out
		if in != nil {
			cmd.Stdin = in
		}
		cmd.SysProcAttr = ownGroup()
		return cmd
	}
	started := make(chan error, 1)
	go p.live(newCommand, started, adopted)
	if err := <-started; err != nil {
		return nil, err
	}
	p.group = p.cmd.Process.Pid
	p.guard = newGuard(p.group)
	return p, nil
}

// live starts the command and waits for it. If this program is killed, the
// kernel kills the command when the thread that started it is gone: so this
// thread has to stay, and does nothing else.
func (p *process) live(newCommand func() *exec.Cmd, started chan<- error, adopted bool) {
	runtime.LockOSThread()
	var release func()
	if adopted {
		release, adopted = holdOrphans()
	}
	var err error
	if adopted {
		err = p.startAdopted(newCommand, release)
	} else {
		p.cmd = newCommand()
		err = p.cmd.Start()
	}
	started <- err
	if err != nil {
		return
	}
	p.success = awaitEnd(p.cmd.Process.Pid)
	close(p.ended)
	// Until it is collected, its number, which is also that of the group,
	// cannot become another's.
	<-p.release
	p.cmd.Wait() // how it ended is in ProcessState
	close(p.collected)
}

// startAdopted starts a command whose descendants are known by a mark. If the
// command can be held, it gets the mark before it runs any code.
func (p *process) startAdopted(newCommand func() *exec.Cmd, release func()) error {
	p.cmd = newCommand()
	held := holdAtStart(p.cmd)
	err := p.cmd.Start()
	if err != nil && held {
		held = false
		p.cmd = newCommand()
		err = p.cmd.Start()
	}
	if err != nil {
		release()
		return err
	}
	pid := p.cmd.Process.Pid
	if m, ok := newMark(pid); ok {
		p.tree = &processTree{first: pid, mark: m, release: release, seen: map[int]uint64{}}
	} else {
		release()
	}
	if held {
		letStart(pid)
	}
	return nil
}

// sampler samples the command with its descendants; nil if the command has ended.
func (p *process) sampler() *proc.Sampler {
	if p.tree != nil {
		return proc.NewSamplerFunc(p.group, p.tree.pids)
	}
	s, err := proc.NewSampler(p.group)
	if err != nil {
		return nil // it has ended already
	}
	return s
}

// killedWithin is how long processes may take to be gone after SIGKILL.
const killedWithin = 5 * time.Second

// finish stops what is left of the group, then processes that left the group, and
// collects the first process. It reports whether anything in the group had to be
// stopped, whether SIGTERM was ignored, and which processes had left the group.
func (p *process) finish(deadline *stopDeadline, grace time.Duration) (terminated, deaf bool, left []Process) {
	if p.runs() {
		terminated = true
		signalGroup(p.group, syscall.SIGTERM)
		begin := time.Now()
		if !p.gone(deadline, func() bool { return deadline.passed(begin, grace) }) {
			deaf = !deadline.killNow()
			signalGroup(p.group, syscall.SIGKILL)
			begin = time.Now()
			p.gone(deadline, func() bool { return time.Since(begin) >= killedWithin })
		}
	}
	if p.tree != nil {
		left = p.tree.terminate(deadline, grace)
		p.tree.close()
	}
	p.guard.dismiss()
	if !p.runs() {
		close(p.release)
		<-p.collected
	}
	return terminated, deaf, left
}

// runs reports whether any process of the group runs.
func (p *process) runs() bool {
	return slices.ContainsFunc(proc.Group(p.group), func(pid int) bool { return pid != p.guard.pid() })
}

// gone waits until nothing of the group runs, or the time is over.
func (p *process) gone(deadline *stopDeadline, over func() bool) bool {
	for pause := 5 * time.Millisecond; p.runs(); pause = min(2*pause, moment) {
		if over() {
			return false
		}
		deadline.pause(pause)
	}
	return true
}

// usage returns what the kernel counted for the first process, for all that it
// waited for and for orphans; nothing if it was not collected.
func (p *process) usage() totals {
	var sum totals
	if p.cmd.ProcessState == nil {
		return sum
	}
	if u, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		sum = totalsOf(u)
	}
	if p.tree != nil {
		sum.add(p.tree.used)
	}
	return sum
}

// signalName names the signal that ended a process: "segmentation fault".
func signalName(state *os.ProcessState) string {
	if s, ok := state.Sys().(syscall.WaitStatus); ok {
		return s.Signal().String()
	}
	return "unknown"
}
