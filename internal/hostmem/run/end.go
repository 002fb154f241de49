package run

import "time"

// The end of a command is the last tenth of its time, but no more than ten
// seconds.
const (
	endShare = 10
	endMost  = 10 * time.Second
)

// end is the points that show what the command held in the end, at least one of
// them. Of one that was ended that is its last point.
//
// One that ends by itself goes piece by piece: workers first, then who has waited
// for them; and before it goes, an interpreter takes its objects apart. What is
// left while that happens says little, and which part of it the last sample has
// seen is luck. So all points in its end count, until a process leaves. One that
// left earlier was done with its part: the others worked on without it.
func (r *Run) end() []Point {
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

// unseen tells that the command was over before there was anything to see but
// its start, when the program was not even loaded.
func (r *Run) unseen() bool {
	return len(r.Points) == 0 || r.Exit != nil && r.end()[0] == r.Points[0]
}
