package policies

import (
	"context"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/internal/policy/placement"
)

// unit is what requests are rounded to.
const unit = 512

// rounded returns the size of a live block.
func (c *course) rounded(size uint64) uint64 {
	if c.exact {
		return size
	}
	return (max(size, 1) + unit - 1) / unit * unit
}

// buffers returns the lifetimes of all tensors, from their allocation until their
// free is complete, in ops; and those of requests that failed in the recording.
func (c *course) buffers() []placement.Buffer {
	out := make([]placement.Buffer, c.tensors)
	waits := map[uint64][]int32{}
	for i := range c.ops {
		o := &c.ops[i]
		at := int64(i)
		switch o.kind {
		case opMalloc:
			out[o.tensor] = placement.Buffer{Lower: at, Upper: int64(len(c.ops)), Size: c.rounded(o.size)}
		case opTry:
			out = append(out, placement.Buffer{Lower: at, Upper: at + 1, Size: c.rounded(o.size)})
		case opFree:
			out[o.tensor].Upper = at
		case opFreeLater:
			waits[o.size] = append(waits[o.size], o.tensor)
		case opComplete:
			for _, t := range waits[o.size] {
				out[t].Upper = at
			}
			delete(waits, o.size)
		}
	}
	return out
}

// plan makes the static plan of all buffers.
func (a *asked) plan(ctx context.Context) (*Result, error) {
	budget := a.Budget
	if budget <= 0 {
		budget = DefaultBudget
	}
	buffers := a.buffers()
	begin := time.Now()
	p, err := placement.Solve(ctx, buffers, budget)
	if err != nil {
		return nil, err
	}
	if err := placement.Check(buffers, p.Plan); err != nil {
		return nil, err
	}
	height := p.Height
	if !a.exact {
		height = (height + limitStep - 1) / limitStep * limitStep
	}
	r := a.oracle(StaticPlan, height, a.lowerAt)
	r.Parameters["budget_seconds"], r.Parameters["greedy_bytes"] = budget.Seconds(), p.Greedy
	r.CallsPerSecond = perSecond(len(a.ops), time.Since(begin))
	said := "time was up before the bound was reached"
	if p.Ended {
		said = "the plan is as low as the bound"
	}
	r.Notes = append(r.Notes, fmt.Sprintf("greedy by size needs %s, the search tried %d other orders; %s", size(p.Greedy), p.Tried, said))
	if len(a.places) > 1 {
		r.Notes = append(r.Notes, "streams share the plan in the order of the calls: a real one would have to wait where they do")
	}
	return r, nil
}

// oracle describes one buffer that is there from the beginning.
func (a *asked) oracle(name string, height uint64, at int) *Result {
	r := &Result{Policy: name, Kind: Oracle, Parameters: map[string]any{}, Notes: []string{}}
	a.peak(r, height, at)
	r.SmallestLimit = &height
	if r.Fails = a.cap > 0 && height > a.cap; r.Fails {
		r.Notes = append(r.Notes, fmt.Sprintf("it needs %s, there are %s", size(height), size(a.cap)))
	}
	live, asked := a.liveAt(at)
	r.InternalWaste, r.ExternalWaste = bytes(live-asked), bytes(height-min(live, height))
	one, none := int64(1), int64(0)
	r.DeviceAllocs, r.DeviceFrees = &one, &none
	if a.Points > 0 {
		r.Curve = a.level(height)
	}
	return r
}

// liveAt returns the live bytes after an op, rounded and as they were asked for.
func (a *asked) liveAt(at int) (live, requested uint64) {
	sizes := make([]uint64, a.tensors)
	waits := map[uint64][]int32{}
	end := func(t int32) {
		live, requested = live-a.rounded(sizes[t]), requested-sizes[t]
	}
	for i := range a.ops[:min(at+1, len(a.ops))] {
		o := &a.ops[i]
		switch o.kind {
		case opMalloc:
			sizes[o.tensor] = o.size
			live, requested = live+a.rounded(o.size), requested+o.size
		case opTry:
			if i == at {
				live, requested = live+a.rounded(o.size), requested+o.size
			}
		case opFree:
			end(o.tensor)
		case opFreeLater:
			waits[o.size] = append(waits[o.size], o.tensor)
		case opComplete:
			for _, t := range waits[o.size] {
				end(t)
			}
			delete(waits, o.size)
		}
	}
	return live, requested
}

// level is a curve of reserved memory that does not change, over what is live.
func (a *asked) level(height uint64) *Curve {
	var live, requested uint64
	points := make([]point, 0, a.Points)
	sizes := make([]uint64, a.tensors)
	now := point{reserved: height}
	n, next := len(a.ops), 0
	pieces := max(min(a.Points, n), 1)
	for i := range a.ops {
		switch o := &a.ops[i]; o.kind {
		case opMalloc:
			sizes[o.tensor] = o.size
			live, requested = live+a.rounded(o.size), requested+o.size
		case opFree, opFreeLater:
			live, requested = live-a.rounded(sizes[o.tensor]), requested-sizes[o.tensor]
		}
		now.given, now.requested = max(now.given, live), max(now.requested, requested)
		if i+1 == n*(next+1)/pieces {
			now.op = i
			points = append(points, now)
			now = point{reserved: height, given: live, requested: requested}
			next++
		}
	}
	return a.curve(points)
}

// bound is the row of the lower bound.
func (a *asked) bound(context.Context) (*Result, error) {
	r := a.oracle(LowerBound, a.lower, a.lowerAt)
	r.Kind, r.DeviceAllocs, r.DeviceFrees = Bound, nil, nil
	return r, nil
}
