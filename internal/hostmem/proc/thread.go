package proc

// LivingThread is a thread of a process that has not ended; 0 if there is none.
// The first thread may end before the others. The kernel then shows nothing
// under the number of the process, but all of it under that of another thread.
func LivingThread(pid int) int {
	tasks, err := Threads(pid)
	if err != nil {
		return 0
	}
	for _, tid := range tasks {
		if s, err := ReadStat(tid); err == nil && !s.Ended() {
			return tid
		}
	}
	return 0
}
