package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// candidates lists the versions that may have written the file and of whose rules
// the trace can show a difference, the likeliest first. What looks like 2.12 may be
// a nightly build from before the order of free blocks changed.
func (v *verifier) candidates() []pytorch.Version {
	first := v.trace.Writer.Assumed()
	out := []pytorch.Version{first}
	seen := []alloc.Differences{v.showing(first)}
	others := v.trace.Writer.Versions()
	if v.trace.Writer.First == pytorch.Of(2, 12) && len(others) > 1 {
		others = append(others, pytorch.Default)
	}
	for _, x := range others {
		if d := v.showing(x); !slices.Contains(seen, d) {
			out, seen = append(out, x), append(seen, d)
		}
	}
	return out
}

// showing returns the differences of a version that a replay of the trace can run
// into. The pools of allocations, what completes when and what a limit refused come
// from the trace, whatever rule decided them.
func (v *verifier) showing(x pytorch.Version) alloc.Differences {
	d := alloc.DifferencesOf(x)
	pools := v.config.pools != nil
	return alloc.Differences{
		Order:        d.Order,
		UnroundedOne: d.UnroundedOne && slices.Contains(v.settings.RoundupPower2Divisions[:], 1),
		PlainPrivate: d.PlainPrivate && v.settings.ExpandableSegments && pools,
		CaptureOnly:  d.CaptureOnly && pools,
	}
}

// bestVersion plays the trace under the rules of each candidate. It returns the
// replay that went through, or else the one that got furthest.
func (v *verifier) bestVersion(ctx context.Context) (*player, error) {
	tried := v.candidates()
	if len(tried) == 1 || v.rows.Len() == 0 {
		return v.best(ctx)
	}
	// A plain replay tells which is worth a search.
	plain := map[pytorch.Version]*player{}
	for _, x := range tried {
		c := v.config
		c.version = x
		p, err := v.play(ctx, c)
		if err != nil {
			return nil, err
		}
		if plain[x] = p; p.diff == nil {
			tried = []pytorch.Version{x}
			break
		}
	}
	slices.SortStableFunc(tried, func(x, y pytorch.Version) int { return cmp.Compare(plain[y].pos, plain[x].pos) })
	var best *player
	for _, x := range tried {
		v.config.version, v.plain, v.furthest, v.spent = x, plain[x], nil, work{}
		p, err := v.best(ctx)
		if err != nil {
			return nil, err
		}
		if best == nil || p.diff == nil || p.pos > best.pos {
			best = p
		}
		if p.diff == nil {
			break
		}
	}
	v.notes = append(v.notes, fmt.Sprintf("the fields of the file are those of PyTorch %v; the rules of %v fit it best", v.trace.Writer, best.config.version))
	return best, nil
}
