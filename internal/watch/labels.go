package watch

import (
	"fmt"
	"time"
)

// Job names what a row belongs to: an attempt of a run with several ranks, or a
// process of its own, of which several may have the name of one script.
func (r *RunStatus) Job() string {
	if r.World > 1 {
		return fmt.Sprintf("%s.%d", r.Run, r.Attempt)
	}
	return r.Session
}

// Labels names the jobs of rows by [RunStatus.Job], so that no two look alike:
// the run and its attempt, and where that is not enough the process, the host and
// when it began.
func Labels(rows []RunStatus) map[string]string {
	first := map[string]*RunStatus{}
	like := map[string][]string{} // jobs by their shortest label
	for i := range rows {
		r := &rows[i]
		if job := r.Job(); first[job] == nil {
			first[job] = r
			like[r.label(0)] = append(like[r.label(0)], job)
		}
	}
	labels := map[string]string{}
	for _, jobs := range like {
		for detail := 0; detail < labelDetails; detail++ {
			seen := map[string]bool{}
			for _, job := range jobs {
				labels[job] = first[job].label(detail)
				seen[labels[job]] = true
			}
			if len(seen) == len(jobs) {
				break
			}
		}
	}
	return labels
}

const labelDetails = 4

// label names a row in the given detail.
func (r *RunStatus) label(detail int) string {
	text := r.Run
	if r.Attempt > 0 {
		text += fmt.Sprintf(" (attempt %d)", r.Attempt)
	}
	if detail >= 2 && r.Host != "" {
		text += " " + r.Host
	}
	if detail >= 1 {
		text += fmt.Sprintf(" pid %d", r.PID)
	}
	if detail >= 3 {
		text += time.UnixMicro(r.StartedUS).Format(" 15:04:05")
	}
	return text
}
