package dry

import (
	"cmp"
	"context"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/settings"
)

// levers are what can be changed without another dry run: the allocator's
// settings, and when the cache is emptied.
func (p *Played) levers(ctx context.Context) []func() (*plan.Lever, error) {
	var out []func() (*plan.Lever, error)
	if !p.Settings.ExpandableSegments {
		out = append(out, func() (*plan.Lever, error) {
			return p.TrySetting(ctx, "expandable segments", "expandable_segments:True")
		})
	}
	if p.Settings.MaxSplitSize == settings.None {
		for _, size := range []string{"32", "128", "512"} {
			out = append(out, func() (*plan.Lever, error) { return p.TrySetting(ctx, splitName, "max_split_size_mb:"+size) })
		}
	}
	if at := p.stepEnds(); len(at) > 0 {
		out = append(out, func() (*plan.Lever, error) { return p.TryEmptyCache(ctx, "empty the cache after each step", at) })
	}
	return out
}

const splitName = "large blocks stay whole"

// stepEnds are the events before which a step of training is done.
func (p *Played) stepEnds() []int {
	var out []int
	step := 0
	for _, ph := range p.Run.Ledger.Phases {
		if ph.Step > max(step, 1) && ph.First < len(p.Run.Ledger.Events) {
			out = append(out, ph.First)
		}
		step = max(step, ph.Step)
	}
	return out
}

// best are the levers that save something, of those of one name the one that
// saves most.
func best(found []*plan.Lever) []plan.Lever {
	out := []plan.Lever{}
	for _, l := range found {
		if l == nil {
			continue
		}
		if i := slices.IndexFunc(out, func(x plan.Lever) bool { return x.Name == l.Name }); i < 0 {
			out = append(out, *l)
		} else if out[i].Saving < l.Saving {
			out[i] = *l
		}
	}
	slices.SortStableFunc(out, func(a, b plan.Lever) int { return cmp.Compare(b.Saving, a.Saving) })
	return out
}
