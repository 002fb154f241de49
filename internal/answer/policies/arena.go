package policies

import (
	"context"
	"errors"

	"github.com/ashlar-mem/ashlar/internal/policy"
)

// arena gives the tensors that live within one step a buffer that is only ever
// filled, and emptied at the beginning of each step; best fit serves the others.
func (a *asked) arena(ctx context.Context) (*Result, error) {
	s, err := policy.Parse("best-fit")
	if err != nil {
		return nil, err
	}
	why := a.tooManyHeaps(s)
	if len(a.steps) == 0 {
		why = a.noSteps
	}
	if why != "" {
		return &Result{Policy: Arena, Kind: Oracle, Parameters: map[string]any{}, WhyNot: &why, Notes: []string{}}, nil
	}
	within := a.withinSteps()
	cond := conditions{limit: a.cap, skipOOM: a.SkipOOM, points: a.Points, only: -1, arena: within}
	o, err := a.drive(ctx, s, cond)
	if err != nil {
		return nil, err
	}
	r := a.result(s, o)
	r.Policy, r.Kind = Arena, Oracle
	r.Parameters["buffer_bytes"] = o.arena
	r.Notes = append(a.strategyNotes(s, o.heaps), "it knows which blocks die in the step they are made in")
	if a.NoLimits {
		return r, nil
	}
	high := uint64(0)
	if o.failed == nil && a.cap == 0 {
		high = o.stats.Peak.Reserved
	}
	least, err := a.smallest(high, func(limit uint64) (bool, uint64, error) {
		o, err := a.drive(ctx, s, conditions{limit: limit, only: -1, arena: within})
		if err != nil {
			return false, 0, err
		}
		return o.failed == nil, o.stats.Peak.Reserved, nil
	})
	return r.limited(ctx, least, err)
}

// withinSteps returns for each tensor whether it begins and ends within one step.
func (a *asked) withinSteps() []bool {
	within := make([]bool, a.tensors)
	of := make([]int, a.tensors) // tensor -> the step it began in; 0 is none
	step := 0
	now := func(op int) int { // the step of an op, from 1 on; 0 is none
		call := int(a.calls[op])
		for step < len(a.steps) && call >= a.steps[step][1] {
			step++
		}
		if step < len(a.steps) && call >= a.steps[step][0] {
			return step + 1
		}
		return 0
	}
	begin := func(t int32, op int) { of[t] = now(op) }
	end := func(t int32, op int) { within[t] = of[t] > 0 && of[t] == now(op) }
	_ = a.lives(begin, end, nil) // nothing in here fails
	return within
}

// buffer is the arena of a run under way.
type buffer struct {
	within       []bool   // tensor -> it lives in here
	sizes        []uint64 // of those that do
	used         uint64   // since the step began
	mapped       uint64   // whole granules
	given, asked uint64   // of the tensors that are live
	peak         policy.Peak
}

// arenaMalloc makes an opMalloc with an arena.
func (d *driven) arenaMalloc(i int) error {
	o, b := &d.ops[i], d.buffer
	if b.within[o.tensor] {
		if ok, err := d.put(o); err != nil {
			return err
		} else if !ok {
			s := d.policy.Stats()
			return d.fail(i, &policy.OutOfMemoryError{Size: o.size, Reserved: s.Reserved + b.mapped, Given: s.Given + b.given, Limit: d.limit})
		}
		d.blocks[o.tensor] = inArena
	} else {
		block, err := d.policy.Malloc(o.size, d.places[o.place])
		if err != nil {
			if oom := (*policy.OutOfMemoryError)(nil); errors.As(err, &oom) { // the buffer counts too
				oom.Reserved, oom.Given = oom.Reserved+b.mapped, oom.Given+b.given
			}
			return d.fail(i, err)
		}
		d.blocks[o.tensor] = block
	}
	d.raise(i)
	return nil
}

// raise notes the totals after an op.
func (d *driven) raise(i int) {
	b := d.buffer
	if s := d.policy.Stats(); s.Reserved+b.mapped > b.peak.Reserved {
		b.peak = policy.Peak{Reserved: s.Reserved + b.mapped, Given: s.Given + b.given, Requested: s.Requested + b.asked}
		d.out.peakAt = i
	}
	if d.points > 0 {
		d.note()
	}
}

// put places a tensor in the buffer and reports whether there was room under the
// limit.
func (d *driven) put(o *op) (bool, error) {
	b, n := d.buffer, d.rounded(o.size)
	if more := (b.used + n + limitStep - 1) / limitStep * limitStep; more > b.mapped {
		if d.limit > 0 && more+d.policy.Reserved() > d.limit {
			if err := d.policy.Trim(); err != nil {
				return false, err
			}
			if more+d.policy.Reserved() > d.limit {
				return false, nil
			}
		}
		b.mapped = more
		if d.limit > 0 {
			d.policy.SetLimit(max(d.limit-b.mapped, 1))
		}
	}
	b.used, b.given, b.asked = b.used+n, b.given+n, b.asked+o.size
	b.sizes[o.tensor] = o.size
	return true, nil
}

// take ends a tensor in the buffer. Its memory stays in use until the step ends.
func (d *driven) take(tensor int32) {
	size := d.buffer.sizes[tensor]
	d.buffer.given -= d.rounded(size)
	d.buffer.asked -= size
}
