package vary

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/replay"
)

// Variation is one way in which the next run may differ.
type Variation struct {
	Name string // in words, such as "sizes +3 %"

	plan  *plan
	order []int               // of all steps
	out   []bool              // steps that are left out
	size  func(uint64) uint64 // nil: as they are
}

// Of returns the variations of a program. steps are those that came to their end,
// as ranges of events in order. A program with few steps is varied in its sizes
// only.
func Of(p *replay.Program, steps [][2]int, seed uint64) []*Variation {
	pl := newPlan(p, steps)
	var order, movable []int
	for i := range steps {
		order = append(order, i)
		if !pl.fixed[i] {
			movable = append(movable, i)
		}
	}
	none := make([]bool, len(steps))
	all := []*Variation{
		{Name: "sizes +3 %", plan: pl, order: order, out: none, size: scaled(1.03)},
		{Name: "sizes -3 %", plan: pl, order: order, out: none, size: scaled(0.97)},
		{Name: "each size up to 3 % off", plan: pl, order: order, out: none, size: jittered(seed)},
	}
	if len(movable) < 2 {
		return all
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(steps))))
	last := 0
	for _, part := range []int{4, 3, 2} {
		out := slices.Clone(none)
		n := max(1, len(movable)/part)
		if n == last {
			continue
		}
		last = n
		for _, k := range random.Perm(len(movable))[:n] {
			out[movable[k]] = true
		}
		all = append(all, &Variation{Name: fmt.Sprintf("%d of %d steps left out", n, len(steps)), plan: pl, order: order, out: out})
	}
	arrange := func(name string, change func(list []int)) {
		list := slices.Clone(movable)
		change(list)
		to := slices.Clone(order)
		for i, at := range movable {
			to[at] = list[i]
		}
		if slices.ContainsFunc(all, func(v *Variation) bool { return slices.Equal(v.order, to) }) {
			return
		}
		all = append(all, &Variation{Name: name, plan: pl, order: to, out: none})
	}
	arrange("steps in reverse order", slices.Reverse[[]int])
	for range 2 {
		arrange("steps in another order", func(list []int) {
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		})
	}
	return all
}

// WarmUp is how many steps come before those whose driver calls count: in them
// the cache fills.
const WarmUp = 2

// WarmFrom returns the first call of a program after the warm-up; 0 if nothing
// comes after it.
func WarmFrom(p *replay.Program, steps [][2]int) int {
	if len(steps) <= WarmUp {
		return 0
	}
	return firstCall(p, steps[WarmUp][0])
}

// Program makes the calls of the variation, and says which is the first after
// the warm-up. Each call has the event of the one it was made from, so events are
// in no order.
func (v *Variation) Program() (p *replay.Program, warmFrom int) {
	pl := v.plan
	p = pl.program.Rebuild(pl.program.Len(), func(add func(replay.Call)) {
		m := newMaker(v, add)
		m.calls(0, pl.bounds[0], nil)
		made := 0
		for at, i := range v.order {
			if !v.out[i] {
				made++
			}
			if made > WarmUp && warmFrom == 0 {
				warmFrom = m.count
			}
			m.step(at)
		}
		m.calls(pl.bounds[len(v.order)], pl.program.Len(), nil)
	})
	return p, warmFrom
}

// scaled multiplies sizes.
func scaled(by float64) func(uint64) uint64 {
	return func(n uint64) uint64 { return uint64(float64(n) * by) }
}

// jittered gives each size its own factor, so that equal sizes stay equal.
func jittered(seed uint64) func(uint64) uint64 {
	return func(n uint64) uint64 {
		r := rand.New(rand.NewPCG(seed, n))
		return uint64(float64(n) * (0.97 + 0.06*r.Float64()))
	}
}
