package policies

import (
	"context"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/policy/placement"
)

// rounded returns the size of a live block.
func (c *course) rounded(size uint64) uint64 {
	if c.exact {
		return size
	}
	return (max(size, 1) + alloc.MinBlock - 1) / alloc.MinBlock * alloc.MinBlock
}

// lives goes through the ops: begin is called where a tensor is allocated, end where
// its free is complete, and then after, which may be nil, with every op.
func (c *course) lives(begin, end func(tensor int32, op int), after func(op int) error) error {
	waits := map[uint64][]int32{}
	for i := range c.ops {
		switch o := &c.ops[i]; o.kind {
		case opMalloc:
			begin(o.tensor, i)
		case opFree:
			end(o.tensor, i)
		case opFreeLater:
			waits[o.size] = append(waits[o.size], o.tensor)
		case opComplete:
			for _, t := range waits[o.size] {
				end(t, i)
			}
			delete(waits, o.size)
		}
		if after != nil {
			if err := after(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// buffers returns the lifetimes of all tensors, from their allocation until their
// free is complete, in ops, and those of requests that failed in the recording; in the
// order in which they begin.
func (c *course) buffers() []placement.Buffer {
	out := make([]placement.Buffer, 0, c.tensors)
	add := func(i, upper int) {
		out = append(out, placement.Buffer{Lower: int64(i), Upper: int64(upper), Size: c.rounded(c.ops[i].size)})
	}
	of := make([]int32, c.tensors) // tensor -> its place
	begin := func(t int32, i int) {
		of[t] = int32(len(out))
		add(i, len(c.ops))
	}
	end := func(t int32, i int) { out[of[t]].Upper = int64(i) }
	_ = c.lives(begin, end, func(i int) error { // nothing in here fails
		if c.ops[i].kind == opTry {
			add(i, i+1)
		}
		return nil
	})
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

// eachLive calls f after every op with what is live then. A request that failed in
// the recording is live for its op.
func (a *asked) eachLive(f func(op int, live, requested uint64)) {
	sizes := make([]uint64, a.tensors)
	var live, requested uint64
	begin := func(t int32, i int) {
		sizes[t] = a.ops[i].size
		live, requested = live+a.rounded(sizes[t]), requested+sizes[t]
	}
	end := func(t int32, _ int) { live, requested = live-a.rounded(sizes[t]), requested-sizes[t] }
	_ = a.lives(begin, end, func(i int) error { // nothing in here fails
		if o := &a.ops[i]; o.kind == opTry {
			f(i, live+a.rounded(o.size), requested+o.size)
		} else {
			f(i, live, requested)
		}
		return nil
	})
}

// liveAt returns the live bytes after an op, rounded and as they were asked for.
func (a *asked) liveAt(at int) (live, requested uint64) {
	a.eachLive(func(op int, l, r uint64) {
		if op == at {
			live, requested = l, r
		}
	})
	return live, requested
}

// level is a curve of reserved memory that does not change, over what is live.
func (a *asked) level(height uint64) *Curve {
	points := make([]point, 0, a.Points)
	now := point{reserved: height}
	n := len(a.ops)
	pieces := max(min(a.Points, n), 1)
	a.eachLive(func(op int, live, requested uint64) {
		now.given, now.requested = max(now.given, live), max(now.requested, requested)
		if op+1 == n*(len(points)+1)/pieces {
			now.op = op
			points = append(points, now)
			now = point{reserved: height, given: live, requested: requested}
		}
	})
	return a.curve(points)
}

// bound is the row of the lower bound.
func (a *asked) bound(context.Context) (*Result, error) {
	r := a.oracle(LowerBound, a.lower, a.lowerAt)
	r.Kind, r.DeviceAllocs, r.DeviceFrees = Bound, nil, nil
	return r, nil
}
