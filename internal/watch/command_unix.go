//go:build unix

package watch

import (
	"os/exec"
	"syscall"
)

// endWithChildren has what a command started end with it when its time is over.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
