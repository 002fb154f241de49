package plan

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
)

// OnCard is a job on one card of a comparison.
type OnCard struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Total uint64 `json:"total_bytes"`
	// TotalEstimated: the card's total was neither measured nor found in public
	// output.
	TotalEstimated bool   `json:"total_estimated"`
	Available      uint64 `json:"available_bytes"`

	Fits          bool   `json:"fits"`
	PeakAllocated uint64 `json:"peak_allocated_bytes"`
	PeakReserved  uint64 `json:"peak_reserved_bytes"`
	SmallestLimit uint64 `json:"smallest_limit_bytes"`
	Headroom      int64  `json:"headroom_bytes"`
	// Limited is the run within the card's memory; nil if it does not fit.
	Limited *Limited `json:"limited"`
	Taken   string   `json:"taken,omitempty"` // how the name was understood
}

// CompareCards plans a job for several cards. The model is run symbolically once
// for all cards that give PyTorch the same kernels and workspaces.
func CompareCards(ctx context.Context, q Question, on []cards.Card) ([]OnCard, error) {
	type kernels struct {
		workspace    uint64
		major, minor int
	}
	kind := func(c *cards.Card) kernels { return kernels{c.WorkspaceBytes(), c.Major, c.Minor} }
	first := map[kernels]int{}
	var kinds []int // the first card of each
	for i := range on {
		if _, ok := first[kind(&on[i])]; !ok {
			first[kind(&on[i])] = len(kinds)
			kinds = append(kinds, i)
		}
	}
	plans, limits := make([]*planned, len(kinds)), make([]uint64, len(kinds))
	err := parallel.Each(ctx, parallel.AllCores, len(kinds), func(k int) (err error) {
		asked := q
		asked.Capacity.Card = &on[kinds[k]]
		if err := asked.prepare(); err != nil {
			return err
		}
		if plans[k], _, err = asked.plan(ctx, asked.Options, 0); err != nil {
			return err
		}
		var a Outcome
		err = plans[k].FindLimit(ctx, &a)
		limits[k] = a.SmallestLimit
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]OnCard, len(on))
	err = parallel.Each(ctx, parallel.AllCores, len(on), func(i int) (err error) {
		k := first[kind(&on[i])]
		p, asked := *plans[k], q
		asked.Capacity.Card = &on[i]
		if err := asked.prepare(); err != nil {
			return err
		}
		p.question, p.Capacity = &asked, asked.Capacity
		out[i], err = p.onCard(ctx, limits[k])
		return err
	})
	return out, err
}

// onCard is a plan on the card of its question.
func (p *planned) onCard(ctx context.Context, smallest uint64) (OnCard, error) {
	c, available := p.Capacity.Card, p.available()
	limited, _, err := p.fits(ctx)
	return OnCard{
		Name: c.Name, Title: c.Title, Total: c.TotalBytes, TotalEstimated: c.Total == cards.Estimate, Available: available,
		Fits: limited != nil, PeakAllocated: p.allocated, PeakReserved: p.reserved, SmallestLimit: smallest,
		Headroom: int64(available) - int64(smallest), Limited: limited, Taken: c.Taken,
	}, err
}
