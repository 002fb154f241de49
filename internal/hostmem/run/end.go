package run

import "time"

// The end of a command is the last tenth of its time, but no more than ten
// seconds.
const (
	endShare = 10
	endMost  = 10 * time.Second
)

// lastPoints returns the points that show what the command held in the end, at
// least one of them. For a command that was stopped that is its last point.
//
// A command that ends by itself goes piece by piece: workers first, then whoever
// waited for them; and an interpreter frees its objects before it exits. What is
// left meanwhile says little, and what the last sample sees of it is chance. So
// all points of the end count, until a process exits. A process that exited
// earlier was done: the others worked on without it.
func (r *Run) lastPoints() []Point {
	all := r.Points
	if r.Exit == nil {
		return all[len(all)-1:]
	}
	begin := r.Ended - min(r.Ended/endShare, endMost)
	first, beyond := len(all), len(all)
	for i := len(all) - 1; i > 0 && all[i].At >= begin; i-- {
		first = i
		if all[i].Left > 0 {
			beyond = i
		}
	}
	if first == beyond {
		first--
	}
	return all[first:beyond]
}

// unseen reports whether nothing was measured but the start of the command, when
// the program was not even loaded.
func (r *Run) unseen() bool {
	return len(r.Points) == 0 || r.Exit != nil && r.lastPoints()[0] == r.Points[0]
}
