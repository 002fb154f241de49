package proc

import (
	"syscall"
	"time"
)

// Group lists the running processes of a process group, also those whose
// parents have ended.
func Group(group int) []int {
	var pids []int
	for _, s := range All() {
		if s.Group == group && !s.Ended() {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

// killedWithin is how long processes may take to be gone after SIGKILL.
const killedWithin = 5 * time.Second

// EndGroup asks the processes of a group to end, and kills those that have not
// after grace. A group's number stays taken as long as a process of it is
// there, so that no other group is hit. It tells whether all are gone and
// whether some had to be killed.
func EndGroup(group int, grace time.Duration) (gone, killed bool) {
	if group <= 1 || groupGone(group, 0) {
		return true, false
	}
	syscall.Kill(-group, syscall.SIGTERM) // none there any more: fine
	syscall.Kill(-group, syscall.SIGCONT) // what is stopped cannot follow
	if groupGone(group, grace) {
		return true, false
	}
	syscall.Kill(-group, syscall.SIGKILL)
	return groupGone(group, killedWithin), true
}

// groupGone waits until no process of a group runs.
func groupGone(group int, within time.Duration) bool {
	pause := 5 * time.Millisecond
	for end := time.Now().Add(within); ; time.Sleep(pause) {
		if len(Group(group)) == 0 {
			return true
		}
		if !time.Now().Before(end) {
			return false
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}
