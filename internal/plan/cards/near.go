package cards

import (
	"slices"
	"strings"
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
				best = min(best, distance(want, p))
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

// distance is the number of letters to change, insert or leave out to turn one
// name into the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
