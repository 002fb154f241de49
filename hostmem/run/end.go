package run

import "time"

// The end of a command is the last tenth of its time, but no more than ten
// seconds.
const (
	endShare = 10
	endMost  = 10 * time.Second
)

// last is the point that shows what the command held in the end. Of one that was
// ended that is the last point.
//
// One that ends by itself goes piece by piece: workers first, then who has waited
// for them. What is left while it does so says nothing about it, so the last point
// is taken before any process leaves in its end. One that left earlier was done
// with its part: the others worked on without it.
func (r *Run) last() int {
	n := len(r.Points) - 1
	if r.Exit == nil {
		return n
	}
	begin := r.Ended - min(r.Ended/endShare, endMost)
	for i, p := range r.Points {
		if i > 0 && p.At > begin && p.Left > 0 {
			return i - 1
		}
	}
	return n
}

// unseen tells that the command was over before there was anything to see: its
// only point is that of its start, when the program was not even loaded.
func (r *Run) unseen() bool { return len(r.Points) == 0 || r.Exit != nil && r.last() == 0 }
