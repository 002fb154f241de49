package proc

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
