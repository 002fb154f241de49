package cards

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/spelling"
)

// near lists up to five names that are like a wrong one: those that contain it
// or begin as it does, then those a letter or two away.
func near(text string) []string {
	want := plain(text)
	if want == "" || len(want) > 64 {
		return nil
	}
	type hit struct {
		name string
		away int
	}
	var hits []hit
	for _, c := range List() {
		best := 3
		for _, n := range c.names() {
			p := plain(n)
			switch {
			case strings.HasPrefix(p, want), strings.HasPrefix(want, p) && len(p) > 2:
				best = 0
			default:
				best = min(best, spelling.Distance(want, p))
			}
		}
		if best < 3 && best < len(want) {
			hits = append(hits, hit{c.Name, best})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.away - b.away })
	var out []string
	for _, h := range hits[:min(5, len(hits))] {
		out = append(out, h.name)
	}
	return out
}
