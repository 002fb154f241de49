//go:build unix

package detect

import "syscall"

// end asks a process to end. One that is gone already is fine; one that is
// stopped cannot follow until it runs again.
func end(pid int, signal syscall.Signal) {
	syscall.Kill(pid, signal)
	syscall.Kill(pid, syscall.SIGCONT)
}
