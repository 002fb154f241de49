package run

import (
	"os"
	"os/exec"
)

// guard is a small process in the group of a command. It kills the group if this
// program dies without stopping it, which it notices by the end of its input. As
// a member it signals its own group, so a reused number cannot mislead it. The
// kernel alone would kill only the first process.
type guard struct {
	cmd  *exec.Cmd
	hold *os.File
}

const guardScript = `trap "" HUP INT TERM; read -r _; kill -KILL 0`

// newGuard returns nil if there is no shell, or nothing left to guard.
func newGuard(group int) *guard {
	in, hold, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer in.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript)
	cmd.Env, cmd.Stdin, cmd.SysProcAttr = []string{}, in, inGroup(group)
	if cmd.Start() != nil {
		hold.Close()
		return nil
	}
	return &guard{cmd, hold}
}

// pid returns the PID of the guard; 0 if there is none.
func (g *guard) pid() int {
	if g == nil {
		return 0
	}
	return g.cmd.Process.Pid
}

// dismiss ends the guard.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	g.cmd.Process.Kill()
	g.cmd.Wait() // it was killed
	g.hold.Close()
}
