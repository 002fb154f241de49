package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// Recomputation is a choice of layers to recompute, with its memory and its cost.
type Recomputation struct {
	Name   string `json:"name"`
	Flags  string `json:"flags"`
	Layers []int  `json:"layers"` // those that are computed again
	// Extra is the repeated arithmetic, as a fraction of a step's.
	Extra         float64 `json:"extra_compute"`
	Fits          bool    `json:"fits"`
	PeakAllocated uint64  `json:"peak_allocated_bytes"`
	PeakReserved  uint64  `json:"peak_reserved_bytes"`
}

// BestRecompute is the choice of layers with the least repeated arithmetic that
// fits, beside the usual ones.
type BestRecompute struct {
	Best     Recomputation   `json:"best"`
	Others   []Recomputation `json:"others"`
	Searched int             `json:"plans"` // how many jobs were planned
}

// FindRecompute finds the cheapest recomputation that fits. If none does, Best is
// the one that takes least memory.
//
// The memory of a choice is estimated layer by layer from the ledgers of the plain
// and of the fully recomputed run; dynamic programming over the layers finds the
// cheapest choice within a budget. That choice is planned in full and replayed,
// and the budget moves until the choice fits and the next cheaper one does not.
// Then choices with one layer less are planned in full: the first and the last
// layers, in groups of one to four, and the choice without its first or last
// layer. Best is the cheapest of those; a cheaper one may exist.
func FindRecompute(ctx context.Context, q Question) (*BestRecompute, error) {
	if err := q.prepare(); err != nil {
		return nil, err
	}
	switch {
	case !q.Capacity.given():
		return nil, problem.New("{recompute} best needs something to fit into: give {gpu} or {limit}")
	case q.Model.Pair():
		return nil, problem.New("{recompute} best is for models with one stack of layers, and %s has two: use full", q.Model.Family)
	case q.Options.Has("use-cache"):
		return nil, cacheInGroups(Best)
	}
	b := &bestSearch{question: &q, tried: map[string]*candidate{}}
	names := []string{"none", "selective", "sqrt", "full"}
	usual := make([]*candidate, len(names))
	if _, _, err := q.Options.with("recompute", "none").Job(q.Model); err != nil {
		return nil, err
	}
	err := parallel.Each(ctx, parallel.AllCores, len(names), func(i int) (err error) {
		usual[i], err = b.plan(ctx, names[i], names[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &BestRecompute{}
	for _, c := range usual {
		out.Others = append(out.Others, c.Recomputation)
	}
	none, full := usual[0], usual[3]
	best := none
	if !none.Fits {
		if best, err = b.search(ctx, none, full); err != nil {
			return nil, err
		}
		for _, c := range usual[2:] { // those the choice could have been
			if c.better(best) {
				best = c
			}
		}
	}
	out.Best, out.Searched = best.Recomputation, len(names)+len(b.tried)
	return out, nil
}

// candidate is a choice that was planned.
type candidate struct {
	Recomputation
	*planned
}

// better reports whether a choice is preferable: it fits and repeats less, or, if
// neither fits, it takes less memory.
func (c *candidate) better(o *candidate) bool {
	switch {
	case c.Fits != o.Fits:
		return c.Fits
	case c.Fits:
		return c.Extra < o.Extra
	}
	return c.PeakAllocated < o.PeakAllocated
}

type bestSearch struct {
	question *Question
	tried    map[string]*candidate // by groups
}

// plan plans a choice.
func (b *bestSearch) plan(ctx context.Context, name, value string) (*candidate, error) {
	p, _, err := b.question.plan(ctx, b.question.Options.with("recompute", value), 0)
	if err != nil {
		return nil, err
	}
	c := &candidate{planned: p}
	c.Name, c.Flags, c.Layers = name, "--recompute "+value, []int{}
	switch p.job.Recompute.Mode {
	case "group":
		c.Layers = append(c.Layers, recomputed(p.job.Recompute.Groups)...)
	case "full":
		for i := range b.question.Model.Layers {
			c.Layers = append(c.Layers, i)
		}
	}
	w := workOf(p.job)
	c.Extra = w.extra(c.Layers...)
	c.PeakAllocated, c.PeakReserved = p.allocated, p.reserved
	c.Fits, err = p.passes(ctx)
	return c, err
}

// nearEnough is when the search for a budget ends, as a part of what is available.
const nearEnough = 1000

// search bisects the budget that the estimate is given, from the least that it
// can be kept within to where nothing is recomputed.
func (b *bestSearch) search(ctx context.Context, none, full *candidate) (*candidate, error) {
	e := newEstimate(none, full)
	best := full
	available := none.available()
	low, high := e.least(available), e.base+total(e.saved)+e.end
	for budget := available; low < high; budget = low + (high-low)/2 {
		c, err := b.within(ctx, e, budget)
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			low = budget + available/nearEnough
			continue
		case c.better(best):
			best = c
		}
		if c.Fits {
			low = budget + available/nearEnough
		} else {
			high = min(high, budget) - min(high, available/nearEnough)
		}
	}
	return b.fewer(ctx, best, len(e.work))
}

// longNeighbour is the length of the longest groups that are tried beside what
// the estimate proposes.
const longNeighbour = 4

// fewer leaves layers out as long as that fits. The estimate knows sizes, not
// the allocator's history, which is better for some layers than for others: the
// first, the last, what was found without its first or last, and the same
// number of layers in longer groups, of which less is kept.
func (b *bestSearch) fewer(ctx context.Context, best *candidate, n int) (*candidate, error) {
	for best.Fits && len(best.Layers) > 1 {
		k := len(best.Layers) - 1
		choices := [][]int{only(best.Layers[1:], n), only(best.Layers[:k], n)}
		for size := 1; size <= min(longNeighbour, k); size++ {
			groups := groupsOf(k, size)
			choices = append(choices, append([]int{k - n}, groups...), append(slices.Clone(groups), k-n))
		}
		choices = slices.DeleteFunc(choices, func(groups []int) bool { return b.tried["groups:"+groupsText(groups)] != nil })
		found := make([]*candidate, len(choices))
		err := parallel.Each(ctx, parallel.AllCores, len(choices), func(i int) (err error) {
			found[i], err = b.plan(ctx, Best, "groups:"+groupsText(choices[i]))
			return err
		})
		if err != nil {
			return nil, err
		}
		next := best
		for i, c := range found {
			b.tried["groups:"+groupsText(choices[i])] = c
			if c.better(next) {
				next = c
			}
		}
		if next == best {
			break
		}
		best = next
	}
	return best, nil
}

// only are groups in which the given of n layers are recomputed one by one.
func only(layers []int, n int) []int {
	var out []int
	at := 0
	for _, l := range layers {
		if l > at {
			out = append(out, at-l)
		}
		out = append(out, 1)
		at = l + 1
	}
	if at < n {
		out = append(out, at-n)
	}
	return out
}

// within plans the cheapest choice within a budget; nil if there is none.
func (b *bestSearch) within(ctx context.Context, e *estimate, budget uint64) (*candidate, error) {
	groups := e.cheapest(budget)
	if groups == nil {
		return nil, nil
	}
	text := "groups:" + groupsText(groups)
	if c := b.tried[text]; c != nil {
		return c, nil
	}
	c, err := b.plan(ctx, Best, text)
	b.tried[text] = c
	return c, err
}

// Apply makes the choice an option.
func (r *Recomputation) Apply(o Options) Options {
	return o.with("recompute", r.Flags[len("--recompute "):])
}

// Text says which layers are recomputed.
func (r *Recomputation) Text() string {
	if len(r.Layers) == 0 {
		return "no layer"
	}
	first, last := r.Layers[0], r.Layers[len(r.Layers)-1]
	if last-first+1 == len(r.Layers) {
		if first == last {
			return fmt.Sprintf("layer %d", first)
		}
		return fmt.Sprintf("layers %d to %d", first, last)
	}
	return fmt.Sprintf("%d of the layers %d to %d", len(r.Layers), first, last)
}
