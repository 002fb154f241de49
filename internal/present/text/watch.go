package text

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

// Watch writes the state of running jobs.
func Watch(w io.Writer, st *watch.Status, style Style) error {
	p := &page{w: w, style: style}
	if len(st.Runs) == 0 {
		p.line("no job has said anything yet: call ashlar.watch() in it, or start it with python ashlar.py --watch")
	} else {
		g := &grid{left: 1, drop: []int{9, 2, 8, 3}, head: [][]string{{"run", "rank", "gpu", "seen", "step", "allocated", "reserved", "frag", "headroom", "per step", "alarms"}}}
		labels := watch.Labels(st.Runs)
		for i := range st.Runs {
			g.rows = append(g.rows, watchRow(&st.Runs[i], labels[st.Runs[i].Job()]))
		}
		for i, line := range g.lines(style.columns()) {
			if i == 0 {
				line = style.bold(line)
			}
			p.line("%s", line)
		}
	}
	p.watchAlarms(st.Alarms)
	if st.LostSamples > 0 {
		p.line("%s samples were lost: jobs could not keep them until they were stored", units.Count(st.LostSamples))
	}
	for _, n := range st.Notes {
		p.wrapped("note: ", Clean(n))
	}
	return p.err
}

func watchRow(r *watch.RunStatus, label string) []string {
	name := Clean(label)
	if r.Source == watch.FromNVML {
		name += " (NVML)"
	}
	seen := fmt.Sprintf("%.0f s", r.LastSeenS)
	if r.LastSeenS >= 120 {
		seen = units.Duration(math.Round(r.LastSeenS) * 1e9)
	}
	if r.Ended {
		seen = "ended"
	}
	frag := "-"
	if r.Fragmentation != nil {
		frag = fmt.Sprintf("%.0f %%", 100**r.Fragmentation)
	}
	growth := "-"
	if r.GrowthBytesPerStep != nil {
		growth = units.Delta(int64(*r.GrowthBytesPerStep))
	}
	gpu, step := "-", "-"
	if r.GPU != nil {
		gpu = fmt.Sprint(*r.GPU)
	}
	if r.Step != nil {
		step = units.Count(*r.Step)
	}
	return []string{
		name, fmt.Sprint(r.Rank), gpu, seen, step, bytesOrDash(r.AllocatedBytes), bytesOrDash(r.ReservedBytes), frag,
		bytesOrDash(r.HeadroomBytes), growth, strings.Join(r.Alarms, " "),
	}
}

func bytesOrDash(n *int64) string {
	if n == nil || *n < 0 {
		return "-"
	}
	return units.Size(uint64(*n))
}

// shownAlarms is how many alarms are listed, the last ones.
const shownAlarms = 8

func (p *page) watchAlarms(all []watch.Alarm) {
	if len(all) == 0 {
		return
	}
	p.heading("alarms", "")
	if n := len(all) - shownAlarms; n > 0 {
		p.line("  %s before these", plural(n, "alarm", "alarms"))
		all = all[n:]
	}
	for i := range all {
		a := &all[i]
		at := time.UnixMicro(a.RaisedUS).Format("2006-01-02 15:04:05")
		state := p.style.Bad("raised")
		if a.ClearedUS != nil {
			state = "cleared after " + units.Duration(float64(*a.ClearedUS-a.RaisedUS)*1e3)
		}
		p.line("  %s  %s: %s rank %d, value %s, %s", at, Clean(a.Name), Clean(a.Run), a.Rank, Clean(a.ValueText), state)
		for _, do := range a.Actions {
			if do.Result != "logged" {
				p.wrapped("    "+Clean(do.Action)+": ", Clean(actionResult(&do)))
			}
		}
	}
}

func actionResult(do *watch.Action) string {
	result := do.Result
	if result == "" {
		result = "under way"
	}
	if do.Before != nil && do.After != nil && *do.Before >= 0 && *do.After >= 0 {
		result += fmt.Sprintf(", reserved %s before and %s after", units.Size(uint64(*do.Before)), units.Size(uint64(*do.After)))
	}
	return result
}
