package plan

import (
	"context"
	"slices"
	"strings"
)

// together finds levers that make a job fit where no single one does. It pulls
// them one after the other, the cheapest first, until the job fits, and then lets
// go the most expensive ones that are not needed. It returns nil if one lever is
// enough, or all of them are not.
func (p *planned) together(ctx context.Context, levers []lever, found []*Lever) (*Lever, error) {
	var pulled []lever
	for i, f := range found {
		if f == nil {
			continue
		}
		if *f.Fits {
			return nil, nil
		}
		next := append(without(pulled, &levers[i]), levers[i])
		ok, changed, err := p.fitsWith(ctx, next)
		if err != nil {
			return nil, err
		}
		if changed == nil {
			continue // it does not go with the others
		}
		if pulled = next; ok {
			return p.fewest(ctx, pulled)
		}
	}
	return nil, nil
}

// fewest lets go levers that are not needed, the most expensive first. The last
// one is needed: without it the job did not fit.
func (p *planned) fewest(ctx context.Context, pulled []lever) (*Lever, error) {
	for i := len(pulled) - 2; i >= 0; i-- {
		fewer := slices.Delete(slices.Clone(pulled), i, i+1)
		ok, _, err := p.fitsWith(ctx, fewer)
		if err != nil {
			return nil, err
		}
		if ok {
			pulled = fewer
		}
	}
	_, changed, err := p.fitsWith(ctx, pulled)
	if err != nil {
		return nil, err
	}
	all := joinLevers(pulled)
	return p.compare(ctx, &all, changed)
}

// fitsWith plans the job with levers pulled. The plan is nil if there is none,
// and has no figures if the job requests more than there is.
func (p *planned) fitsWith(ctx context.Context, pulled []lever) (bool, *planned, error) {
	all := joinLevers(pulled)
	if v, large := p.variants.tooLarge(ctx, p.question, p.question.Options.with(all.options...)); large {
		return false, v, nil
	}
	changed, err := p.changed(ctx, all.options, all.conf)
	if changed == nil || err != nil {
		return false, nil, err
	}
	ok, err := changed.passes(ctx)
	return ok, changed, err
}

// without leaves out levers that another one overrides: those that set nothing
// but what it sets too.
func without(pulled []lever, over *lever) []lever {
	return slices.DeleteFunc(slices.Clone(pulled), func(l lever) bool {
		for i := 0; i < len(l.options); i += 2 {
			if !sets(over, l.options[i]) {
				return false
			}
		}
		return l.conf == ""
	})
}

// sets reports whether a lever sets an option.
func sets(l *lever, name string) bool {
	for i := 0; i < len(l.options); i += 2 {
		if l.options[i] == name {
			return true
		}
	}
	return false
}

// joinLevers makes one lever of several.
func joinLevers(pulled []lever) lever {
	var out lever
	var names, costs []string
	for _, l := range pulled {
		names = append(names, l.name)
		if l.cost != free {
			costs = append(costs, l.cost)
		}
		out.options = append(out.options, l.options...)
		if l.conf != "" {
			out.conf = l.conf
		}
	}
	if len(costs) == 0 {
		costs = []string{free}
	}
	out.name, out.cost = "together: "+strings.Join(names, ", "), strings.Join(costs, "; ")
	return out
}
