package live

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

// State is what all jobs are at.
type State struct {
	NowUS       int64         `json:"now_us"`
	Jobs        []Job         `json:"jobs"`
	Alarms      []watch.Alarm `json:"alarms"`       // the latest first
	OlderAlarms int           `json:"older_alarms"` // that are left out
	LostSamples int64         `json:"lost_samples"`
	Notes       []string      `json:"notes"`
}

// Job is an attempt of a run with its ranks, or a process of its own.
type Job struct {
	Key   string            `json:"key"`
	Label string            `json:"label"` // unlike those of the others
	Ranks []watch.RunStatus `json:"ranks"` // each GPU of each rank
	Odd   []diff.Odd        `json:"odd"`   // by the rule of ashlar diff, over peaks
}

// maxAlarms is how many alarms the page gets.
const maxAlarms = 300

// newState groups the rows of a state by job, and finds the odd ranks. job is the
// one that is looked at, or empty.
func newState(st *watch.Status, now int64, job string) *State {
	out := &State{NowUS: now, Jobs: []Job{}, LostSamples: st.LostSamples, Notes: st.Notes}
	labels := watch.Labels(st.Runs)
	at := map[string]int{}
	looked := map[string]bool{} // sessions of the job
	for i := range st.Runs {
		key := st.Runs[i].Job()
		looked[st.Runs[i].Session] = key == job
		n, ok := at[key]
		if !ok {
			n = len(out.Jobs)
			at[key] = n
			out.Jobs = append(out.Jobs, Job{Key: key, Label: labels[key]})
		}
		out.Jobs[n].Ranks = append(out.Jobs[n].Ranks, st.Runs[i])
	}
	for i := range out.Jobs {
		out.Jobs[i].Odd = findOdd(out.Jobs[i].Ranks)
	}
	slices.SortStableFunc(out.Jobs, func(a, b Job) int { return cmp.Compare(a.Label, b.Label) })
	out.Alarms = slices.Clone(st.Alarms)
	slices.Reverse(out.Alarms)
	// What is raised, or of the job, is never left out before what is neither.
	slices.SortStableFunc(out.Alarms, func(a, b watch.Alarm) int { return order(&a, looked) - order(&b, looked) })
	if n := len(out.Alarms) - maxAlarms; n > 0 {
		out.Alarms, out.OlderAlarms = out.Alarms[:maxAlarms], n
	}
	return out
}

func order(a *watch.Alarm, looked map[string]bool) int {
	switch {
	case a.ClearedUS == nil:
		return 0
	case looked[a.Session]:
		return 1
	}
	return 2
}

// findOdd compares the peaks of the ranks that still run and count for themselves.
func findOdd(rows []watch.RunStatus) []diff.Odd {
	ranks := make([]*diff.Rank, len(rows))
	for i := range rows {
		r := &rows[i]
		k := &diff.Rank{Partial: r.Ended || r.Source != watch.FromJob || r.PeakReservedBytes == nil}
		if r.PeakReservedBytes != nil {
			k.PeakReserved = uint64(*r.PeakReservedBytes)
		}
		if r.PeakAllocatedBytes != nil {
			n := uint64(*r.PeakAllocatedBytes)
			cached := k.PeakReserved - min(n, k.PeakReserved)
			k.PeakAllocated, k.FragmentationBytes = &n, &cached
		}
		if r.OOMs != nil {
			k.OOMs = int(*r.OOMs)
		}
		ranks[i] = k
	}
	return diff.FindOdd(ranks)
}
