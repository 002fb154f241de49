package diff

import (
	"cmp"
	"slices"
)

// line is a line of a source file that occurs in a stack.
type line struct {
	number   int64
	function string
}

func byPlace(a, b line) int {
	return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.function, b.function))
}

// What pairs of lines are worth, and what a change of distance costs. Two runs
// of one file need not come by the same lines, so it takes two pairs more to
// believe that lines moved: one could be chance. But a function that both files
// have, at no common line, shows that the file was edited. Then a single line is
// enough.
const (
	pairWorth      = 4
	moveCost       = 6
	editedMoveCost = 3
)

// maxPairs bounds the work on one file. Files with more lines of one name than
// that are generated; they are left to the comparison by function.
const maxPairs = 4_000_000

// alignLines pairs the lines of two versions of a file: in order, only lines of
// the same function, so that the pairs are worth most less what the changes of
// distance between them cost. Lines start out at the distance 0. Both lists are
// sorted and have no doubles.
func alignLines(a, b []line) map[line]line {
	if slices.Equal(a, b) {
		return identity(a)
	}
	byFunction := map[string][]int{} // positions in b
	for j, l := range b {
		byFunction[l.function] = append(byFunction[l.function], j)
	}
	pairs := 0
	for _, l := range a {
		if pairs += len(byFunction[l.function]); pairs > maxPairs {
			return nil
		}
	}
	cost := int32(moveCost)
	if edited(a, b) {
		cost = editedMoveCost
	}
	// Each pair is the end of the best chain of pairs up to it, which goes on
	// from a pair at the same distance, or from the best of all pairs that lie
	// before it in both files.
	chain := make([]link, 0, pairs)
	same := map[int64]int32{} // the best chain of a distance
	best := newPrefixBest(len(b))
	for i, l := range a {
		first := len(chain)
		for _, j := range byFunction[l.function] {
			distance := b[j].number - l.number
			p := link{lineA: int32(i), lineB: int32(j), previous: -1, worth: pairWorth}
			if distance != 0 {
				p.worth -= cost
			}
			if k, ok := same[distance]; ok && chain[k].worth+pairWorth > p.worth {
				p.previous, p.worth = k, chain[k].worth+pairWorth
			}
			if k := best.below(j); k >= 0 && chain[k].worth+pairWorth-cost > p.worth {
				p.previous, p.worth = k, chain[k].worth+pairWorth-cost
			}
			chain = append(chain, p)
		}
		for k := first; k < len(chain); k++ { // pairs of one line do not follow each other
			p := &chain[k]
			distance := b[p.lineB].number - l.number
			if old, ok := same[distance]; !ok || p.worth > chain[old].worth {
				same[distance] = int32(k)
			}
			best.offer(int(p.lineB), int32(k), p.worth)
		}
	}
	at := best.below(len(b))
	out := map[line]line{}
	for ; at >= 0; at = chain[at].previous {
		out[a[chain[at].lineA]] = b[chain[at].lineB]
	}
	return out
}

// edited reports whether there is a function of which both files have lines,
// but none in common.
func edited(a, b []line) bool {
	const inA, inB, inBoth = 1, 2, 4
	found := map[string]int{}
	lines := map[line]bool{}
	for _, l := range a {
		found[l.function] |= inA
		lines[l] = true
	}
	for _, l := range b {
		found[l.function] |= inB
		if lines[l] {
			found[l.function] |= inBoth
		}
	}
	for _, f := range found {
		if f == inA|inB {
			return true
		}
	}
	return false
}

// link is a pair of lines and the best chain of pairs that ends in it.
type link struct {
	lineA, lineB int32
	previous     int32 // -1: it is the first
	worth        int32
}

func identity(lines []line) map[line]line {
	out := make(map[line]line, len(lines))
	for _, l := range lines {
		out[l] = l
	}
	return out
}

// prefixBest finds the chain of most worth among those that end below a
// position, as a tree of prefix maxima.
type prefixBest struct {
	id    []int32
	worth []int32
}

func newPrefixBest(n int) *prefixBest {
	p := &prefixBest{make([]int32, n+1), make([]int32, n+1)}
	for i := range p.id {
		p.id[i] = -1
	}
	return p
}

func (p *prefixBest) offer(at int, id, worth int32) {
	for i := at + 1; i < len(p.id); i += i & -i {
		if p.id[i] < 0 || worth > p.worth[i] {
			p.id[i], p.worth[i] = id, worth
		}
	}
}

// below returns the best chain that ends before a position; -1 if there is none
// of positive worth.
func (p *prefixBest) below(at int) int32 {
	best, worth := int32(-1), int32(0)
	for i := at; i > 0; i -= i & -i {
		if p.id[i] >= 0 && p.worth[i] > worth {
			best, worth = p.id[i], p.worth[i]
		}
	}
	return best
}
