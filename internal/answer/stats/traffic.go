package stats

import (
	"context"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/trace"
)

// Turnover is how much was allocated and freed.
type Turnover struct {
	Allocations    int    `json:"allocations"`
	Frees          int    `json:"frees"` // by the program
	AllocatedBytes uint64 `json:"allocated_bytes"`
	FreedBytes     uint64 `json:"freed_bytes"`
	// Misses are the allocations for which the driver was asked.
	Misses int `json:"misses"`
	// HitRate is the part of the allocations that the cache served; nil if there
	// were none.
	HitRate *float64 `json:"hit_rate"`
}

// StepTurnover is that of a step; Step is nil for what comes before the first.
type StepTurnover struct {
	Step *int `json:"step"`
	Turnover
}

// StreamTurnover is that of a stream.
type StreamTurnover struct {
	Stream uint64 `json:"stream"`
	Turnover
}

// Traffic is the turnover of a run, by step and by stream.
type Traffic struct {
	Turnover
	Steps   []StepTurnover   `json:"steps"` // empty if no steps are known
	Streams []StreamTurnover `json:"streams"`
}

func (t *Turnover) finish() {
	if t.Allocations > 0 {
		rate := 1 - float64(t.Misses)/float64(t.Allocations)
		t.HitRate = &rate
	}
}

// traffic counts the events of a run.
func (c *collector) traffic(ctx context.Context, r *run.Run) error {
	if c.trace.Events.Len() == 0 {
		return nil
	}
	var steps []findings.Step
	if c.seen != nil { // else the file is too large to look for steps here
		a, err := r.Analysis(ctx)
		if err != nil {
			return err
		}
		steps = a.Steps.List
	}
	c.out.Traffic = countTraffic(c.trace, steps)
	return nil
}

func countTraffic(t *trace.Trace, steps []findings.Step) *Traffic {
	out := &Traffic{Steps: []StepTurnover{}, Streams: []StreamTurnover{}}
	if len(steps) > 0 {
		out.Steps = append(out.Steps, StepTurnover{})
		for _, s := range steps {
			out.Steps = append(out.Steps, StepTurnover{Step: &s.Number})
		}
	}
	byStream := map[uint64]int{}
	step, asked := 0, false // asked: the driver gave memory since the last allocation
	for i := range t.Events.Len() {
		for step < len(steps) && i >= steps[step].Begin {
			step++
		}
		action := t.Events.Action.At(i)
		if action == alloc.ActionSegmentAlloc || action == alloc.ActionSegmentMap {
			asked = true
		}
		if action != alloc.ActionAlloc && action != alloc.ActionFreeRequested {
			continue
		}
		stream := t.Events.Streams[t.Events.Stream.At(i)]
		at, ok := byStream[stream]
		if !ok {
			at = len(out.Streams)
			byStream[stream] = at
			out.Streams = append(out.Streams, StreamTurnover{Stream: stream})
		}
		to := []*Turnover{&out.Turnover, &out.Streams[at].Turnover}
		if len(steps) > 0 {
			to = append(to, &out.Steps[step].Turnover)
		}
		for _, n := range to {
			n.count(action, t.Events.Size.At(i), asked)
		}
		if action == alloc.ActionAlloc {
			asked = false
		}
	}
	out.finish()
	for i := range out.Steps {
		out.Steps[i].finish()
	}
	for i := range out.Streams {
		out.Streams[i].finish()
	}
	return out
}

func (t *Turnover) count(action alloc.Action, size uint64, asked bool) {
	if action == alloc.ActionFreeRequested {
		t.Frees++
		t.FreedBytes += size
		return
	}
	t.Allocations++
	t.AllocatedBytes += size
	if asked {
		t.Misses++
	}
}
