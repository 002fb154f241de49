package watch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// Status is the state of all jobs.
type Status struct {
	Runs        []RunStatus `json:"runs"`
	Alarms      []Alarm     `json:"alarms"`
	LostSamples int64       `json:"lost_samples"`
	Notes       []string    `json:"notes"`
}

// RunStatus is the state of one GPU of one rank of a run. Numbers that are not
// known are null.
type RunStatus struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Rank    int    `json:"rank"`
	World   int    `json:"world"`
	GPU     *int   `json:"gpu"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Session string `json:"session"`
	// Source says who counts: the job, or NVML for a process that cannot be
	// changed. Of that one only what it holds of the device is known, as reserved.
	Source             Source   `json:"source"`
	StartedUS          int64    `json:"started_us"`
	Ended              bool     `json:"ended"`
	LastSeenS          float64  `json:"last_seen_s"`
	Step               *int64   `json:"step"`
	AllocatedBytes     *int64   `json:"allocated_bytes"`
	ReservedBytes      *int64   `json:"reserved_bytes"`
	Fragmentation      *float64 `json:"fragmentation"` // inactive_split of reserved
	HeadroomBytes      *int64   `json:"headroom_bytes"`
	GrowthBytesPerStep *float64 `json:"growth_bytes_per_step"`
	PeakAllocatedBytes *int64   `json:"peak_allocated_bytes"`
	PeakReservedBytes  *int64   `json:"peak_reserved_bytes"`
	DeviceTotalBytes   *int64   `json:"device_total_bytes"`
	LimitBytes         *int64   `json:"limit_bytes"` // that the process may reserve
	StepUS             *int64   `json:"step_us"`
	Retries            *int64   `json:"num_alloc_retries"`
	OOMs               *int64   `json:"num_ooms"`
	Alarms             []string `json:"alarms"` // that are raised
}

// Sample is a sample as --json prints it.
type Sample struct {
	Kind    string `json:"kind"` // sample
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Rank    int    `json:"rank"`
	GPU     *int   `json:"gpu"`
	// Values are the numbers of the sample; those that are not known are left out.
	Values map[string]int64 `json:"values"`
}

func newSample(h *Hello, r Row) Sample {
	s := Sample{"sample", h.Run, h.Attempt, h.Rank, gpuOf(r), map[string]int64{}}
	for i, v := range r.V {
		if v != unknown {
			s.Values[Names[i]] = v
		}
	}
	return s
}

func gpuOf(r Row) *int {
	if r.GPU == unknown {
		return nil
	}
	return &r.GPU
}

func known(v int64) *int64 {
	if v == unknown {
		return nil
	}
	return &v
}

// Status returns the state.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	st := Status{Runs: []RunStatus{}, Alarms: []Alarm{}, Notes: s.counts.notes()}
	raised := map[who][]string{}
	for _, a := range s.alarms {
		if a.ClearedUS == nil {
			key := who{a.Session, a.GPU}
			raised[key] = append(raised[key], a.Name)
		}
	}
	for _, one := range s.sessions {
		st.LostSamples += one.lost
		if one.hello.Ended && one.hello.source() == FromNVML {
			continue // short programs would fill the table
		}
		for _, r := range one.last {
			st.Runs = append(st.Runs, one.status(r, now, raised[who{one.id, r.GPU}]))
		}
		if len(one.last) == 0 {
			none := Row{GPU: unknown}
			for i := range none.V {
				none.V[i] = unknown
			}
			st.Runs = append(st.Runs, one.status(none, now, raised[who{one.id, unknown}]))
		}
	}
	slices.SortFunc(st.Runs, func(a, b RunStatus) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), a.Attempt-b.Attempt, a.Rank-b.Rank, cmp.Compare(a.Host, b.Host), a.PID-b.PID, gpuOrder(a.GPU)-gpuOrder(b.GPU))
	})
	for _, a := range s.alarms {
		copied := *a
		copied.Actions = slices.Clone(a.Actions)
		st.Alarms = append(st.Alarms, copied)
	}
	slices.SortFunc(st.Alarms, func(a, b Alarm) int { return cmp.Or(cmp.Compare(a.RaisedUS, b.RaisedUS), cmp.Compare(a.ID, b.ID)) })
	return st
}

func gpuOrder(gpu *int) int {
	if gpu == nil {
		return unknown
	}
	return *gpu
}

func (one *session) status(r Row, now time.Time, raised []string) RunStatus {
	h := &one.hello
	st := RunStatus{
		Run: h.Run, Attempt: h.Attempt, Rank: h.Rank, World: h.World, GPU: gpuOf(r), Host: h.Host, PID: h.PID, Session: h.Session,
		Source: h.source(), StartedUS: h.TimeUS, Ended: h.Ended,
		LastSeenS: math.Round(now.Sub(one.seen).Seconds()*10) / 10, Step: known(r.V[Step]),
		AllocatedBytes: known(r.V[Allocated]), ReservedBytes: known(r.V[Reserved]), HeadroomBytes: known(r.Headroom()),
		PeakAllocatedBytes: known(r.V[PeakAllocated]), PeakReservedBytes: known(r.V[PeakReserved]), DeviceTotalBytes: known(r.V[DeviceTotal]), LimitBytes: known(r.V[Limit]),
		StepUS: known(r.V[StepTime]), Retries: known(r.V[Retries]), OOMs: known(r.V[OOMs]), Alarms: append([]string{}, raised...),
	}
	if r.V[Reserved] > 0 && r.V[InactiveSplit] != unknown {
		f := float64(r.V[InactiveSplit]) / float64(r.V[Reserved])
		st.Fragmentation = &f
	}
	if g := one.slope[r.GPU]; g != nil {
		if v := growth.eval(&moment{row: &g.row, memory: g.memory}); !math.IsNaN(v) {
			st.GrowthBytesPerStep = &v
		}
	}
	slices.Sort(st.Alarms)
	return st
}

func (c *counts) notes() []string {
	notes := []string{}
	add := func(n int64, text string) {
		if n > 0 {
			notes = append(notes, units.Count(n)+" "+text)
		}
	}
	add(c.requests, "requests were refused: they are not what docs/watch.md describes")
	add(c.refused, "samples were refused: numbers were negative, too large, not whole, no numbers, or missing")
	add(c.later, "samples have fields that only a later version of ashlar knows")
	add(c.jumps, "samples had a time more than an hour from this machine's clock: they were given the time at which they came")
	if c.shrunk {
		notes = append(notes, "the oldest history was removed: the store had come to --max-disk")
	}
	return notes
}
