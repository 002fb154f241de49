package placement

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// Result is the best plan that was found.
type Result struct {
	*Plan
	Greedy uint64 // the height of the greedy plan
	Tried  int    // orders
	// Ended: the search ended because the plan is as low as the bound, not because
	// time was up.
	Ended bool
}

// Solve returns a plan: the greedy one, and the best that a search finds within the
// budget. The greedy plan is always made; the context ends the search after it.
func Solve(ctx context.Context, buffers []Buffer, budget time.Duration) (*Result, error) {
	begin := time.Now()
	p := newPlanner(buffers)
	s := &search{planner: p, total: len(buffers), least: MaxLoad(buffers), random: rand.New(rand.NewPCG(1, 2))}
	order := p.bySize()
	height, ok := p.run(ctx, order, noBound)
	if !ok {
		return nil, context.Cause(ctx)
	}
	s.keep(height)
	s.result.Greedy = height
	ctx, cancel := context.WithDeadline(ctx, begin.Add(budget))
	defer cancel()
	s.orders(ctx)
	s.improve(ctx)
	s.result.Ended = s.result.Height <= s.least
	return &s.result, nil
}

// search looks for an order in which the buffers lie lower.
type search struct {
	*planner
	total  int
	least  uint64
	random *rand.Rand
	result Result
}

// keep makes the plan of the last run the best one.
func (s *search) keep(height uint64) { s.result.Plan = s.plan(s.total, height) }

// done reports whether there is nothing to gain or no time left.
func (s *search) done(ctx context.Context) bool {
	return s.result.Height <= s.least || ctx.Err() != nil
}

// orders tries the orders that people have found useful.
func (s *search) orders(ctx context.Context) {
	life := func(b Buffer) float64 { return float64(b.Upper - b.Lower) }
	for _, weight := range []func(Buffer) float64{
		func(b Buffer) float64 { return float64(b.Size) * life(b) },
		life,
		func(b Buffer) float64 { return -float64(b.Lower) },
	} {
		if s.done(ctx) {
			return
		}
		s.result.Tried++
		if height, ok := s.run(ctx, s.order(weight), s.result.Height); ok {
			s.keep(height)
		}
	}
}

// improve builds skylines, and moves some buffers to other places of the order. An
// order that is no worse takes the place of the one before.
func (s *search) improve(ctx context.Context) {
	if s.done(ctx) {
		return
	}
	sky := &skyline{planner: s.planner}
	life := func(b Buffer) float64 { return float64(b.Upper - b.Lower) }
	var order []int32
	lowest := uint64(noBound)
	try := func(next []int32, most uint64) bool {
		s.result.Tried++
		height, ok := sky.run(ctx, next, most)
		if ok {
			order, lowest = next, height
			if height < s.result.Height {
				s.keep(height)
			}
		}
		return ok
	}
	for _, weight := range []func(Buffer) float64{
		life,
		func(b Buffer) float64 { return float64(b.Size) * life(b) },
		func(b Buffer) float64 { return float64(b.Size) },
	} {
		if s.done(ctx) {
			return
		}
		try(s.order(weight), lowest)
	}
	for !s.done(ctx) && order != nil {
		next := slices.Clone(order)
		for range 1 + s.random.IntN(3) {
			from := s.random.IntN(len(next))
			moved := next[from]
			next = slices.Insert(slices.Delete(next, from, from+1), s.random.IntN(len(next)), moved)
		}
		try(next, lowest+1)
	}
}
