package tune

import "fmt"

// Goal is what settings are compared by.
type Goal string

// The goals.
const (
	LeastReserved Goal = "reserved" // the peak of reserved memory
	SmallestLimit Goal = "limit"    // the least memory with which the run passes
	FewestCalls   Goal = "calls"    // the driver calls after the warm-up
)

// Goals lists all goals.
var Goals = []Goal{LeastReserved, SmallestLimit, FewestCalls}

// ParseGoal reads a goal; empty is the default.
func ParseGoal(text string) (Goal, error) {
	for _, g := range Goals {
		if text == string(g) || text == "" {
			return Goal(text), nil
		}
	}
	return "", fmt.Errorf("%q is no goal: write reserved, limit or calls", text)
}

// or returns the goal that is meant: a run that has to live with a limit is best
// served by what needs least.
func (g Goal) or(limit uint64) Goal {
	switch {
	case g != "":
		return g
	case limit > 0:
		return SmallestLimit
	}
	return LeastReserved
}

// figure is what counts; smaller is better.
func (g Goal) figure(f *figures) uint64 {
	switch g {
	case SmallestLimit:
		return f.need
	case FewestCalls:
		return uint64(f.warm.Calls)
	}
	return f.peak
}

// value is the figure for ratios: one call more than there are.
func (g Goal) value(f *figures) float64 {
	if g == FewestCalls {
		return float64(g.figure(f) + 1)
	}
	return float64(g.figure(f))
}

// of returns the goal's figure of a candidate, under the limit if there is one;
// false if the run fails there.
func (g Goal) of(c *Candidate) (uint64, bool) {
	f := figures{fails: c.Need == 0, peak: c.PeakReserved, warm: c.Warm, need: c.Need}
	if o := c.Limited; o != nil && g != SmallestLimit {
		f = figures{fails: o.Fails, peak: o.Reserved.Bytes, warm: o.Warm}
	}
	return g.figure(&f), !f.fails
}
