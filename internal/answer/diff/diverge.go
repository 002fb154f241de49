package diff

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// Divergence is the first call at which the ranks do not all do the same.
type Divergence struct {
	// Common is the number of calls before it, which are the same everywhere.
	Common int `json:"calls_in_common"`
	// Majority reports whether more ranks take the first branch than any other.
	Majority bool     `json:"majority"`
	Branches []Branch `json:"branches"` // the one with most ranks first
}

// Branch is what some ranks do where they part from others.
type Branch struct {
	Ranks  []int            `json:"ranks"` // positions in the list of ranks
	Call   string           `json:"call"`  // alloc, free or oom
	Bytes  uint64           `json:"size_bytes"`
	Event  int              `json:"event"` // of the first of Ranks
	Frames []timeline.Frame `json:"frames"`
	Site   timeline.Site    `json:"-"` // if there are Frames
}

// findDivergence compares the sequences of calls, and notes of each rank where
// it leaves those that still do the same as the majority.
func (x *Table) findDivergence(rs *Ranks) {
	begin := rs.alignStarts()
	var waiting, together []int // ranks that begin later, and that did the same so far
	for i, r := range rs.Ranks {
		if r.calls.length > 0 {
			waiting = append(waiting, i)
		}
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return cmp.Compare(begin[a], begin[b]) })
	rs.Compared = len(waiting) > 1
	for p := 0; ; p++ {
		for len(waiting) > 0 && begin[waiting[0]] <= p {
			together, waiting = append(together, waiting[0]), waiting[1:]
			slices.Sort(together)
		}
		together = slices.DeleteFunc(together, func(i int) bool { return p-begin[i] >= rs.Ranks[i].calls.length })
		if len(together)+len(waiting) < 2 {
			return
		}
		if len(together) < 2 {
			continue
		}
		if n := rs.samePiece(together, begin, p); n > 0 && (len(waiting) == 0 || begin[waiting[0]] >= p+n) {
			p += n - 1
			rs.common(p)
			continue
		}
		first := rs.call(together[0], begin, p)
		if !slices.ContainsFunc(together[1:], func(i int) bool { return rs.call(i, begin, p) != first }) {
			rs.common(p)
			continue
		}
		branches := rs.branches(together, begin, p)
		if rs.Divergence == nil {
			rs.Divergence = x.divergence(rs, branches, begin, p)
			rs.Common = p
		}
		for _, b := range branches[1:] {
			for _, i := range b {
				event := rs.Ranks[i].calls.event(p - begin[i])
				rs.Ranks[i].Parts = &event
			}
		}
		together = slices.Clone(branches[0])
	}
}

// common notes that the call at a position is the same everywhere.
func (rs *Ranks) common(p int) {
	if rs.Divergence == nil {
		rs.Common = p + 1
	}
}

func (rs *Ranks) call(rank int, begin []int, p int) call {
	return rs.Ranks[rank].calls.callAt(p - begin[rank])
}

// samePiece returns how long the piece is that begins at a position, if ranks
// share it, so that its calls need not be compared; else 0.
func (rs *Ranks) samePiece(ranks, begin []int, p int) int {
	at := (p - begin[ranks[0]]) / callsLen
	piece := rs.Ranks[ranks[0]].calls.pieces[at]
	for _, i := range ranks {
		if p-begin[i] != at*callsLen || rs.Ranks[i].calls.pieces[at] != piece {
			return 0
		}
	}
	return len(piece.what)
}

// branches groups ranks by their call, the largest group first; of equal ones
// the one with the first rank.
func (rs *Ranks) branches(ranks, begin []int, p int) [][]int {
	at := map[call]int{}
	var out [][]int
	for _, i := range ranks {
		c := rs.call(i, begin, p)
		k, ok := at[c]
		if !ok {
			k = len(out)
			at[c] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	slices.SortStableFunc(out, func(a, b []int) int { return cmp.Compare(len(b), len(a)) })
	return out
}

func (x *Table) divergence(rs *Ranks, branches [][]int, begin []int, p int) *Divergence {
	d := &Divergence{Common: p, Majority: len(branches[0]) > len(branches[1])}
	for _, ranks := range branches {
		s := rs.Ranks[ranks[0]].calls
		i := p - begin[ranks[0]]
		b := Branch{Ranks: ranks, Call: s.callAt(i).String(), Bytes: s.callAt(i).size(), Event: s.event(i), Frames: x.frames(s.stack(i))}
		b.Site, _ = timeline.SiteOf(x.trace, s.stack(i))
		d.Branches = append(d.Branches, b)
	}
	return d
}

const (
	// maxShift is how many calls apart the beginnings of two ranks may lie.
	maxShift = 1 << 16
	// minRun is how many calls must be the same to take two places of different
	// ranks for the same moment; layers of a model repeat shorter sequences.
	minRun = 64
	// maxRun is how far calls are compared to find the best fit.
	maxRun = 4096
)

// alignStarts returns for each rank with how many calls before it the earliest
// one begins. Rings that lost their oldest events begin anywhere.
func (rs *Ranks) alignStarts() []int {
	begin := make([]int, len(rs.Ranks))
	if !slices.ContainsFunc(rs.Ranks, func(r *Rank) bool { return r.midrun && r.calls.length > 0 }) {
		return begin
	}
	ref := slices.IndexFunc(rs.Ranks, func(r *Rank) bool { return r.calls.length > 0 })
	for i, r := range rs.Ranks { // counted by ref
		if i != ref && r.calls.length > 0 {
			begin[i] = bestShift(rs.Ranks[ref].calls, r.calls)
		}
	}
	first := slices.Min(begin)
	for i := range begin {
		begin[i] -= first
		rs.Shifted = rs.Shifted || begin[i] > 0
	}
	return begin
}

// bestShift returns how many calls later than a b begins, by the place where
// most calls in a row are the same; 0 if there is no good one.
func bestShift(a, b *sequence) int {
	best, length := 0, minRun-1
	try := func(shift int) {
		if n := sameCalls(a, max(shift, 0), b, max(-shift, 0)); n > length {
			best, length = shift, n
		}
	}
	for shift := 0; shift < maxShift && length < maxRun; shift++ {
		try(shift)
		try(-shift)
	}
	return best
}

// sameCalls counts the calls that are the same from two places on, up to maxRun.
func sameCalls(a *sequence, i int, b *sequence, j int) int {
	n := 0
	for ; n < maxRun && i+n < a.length && j+n < b.length; n++ {
		if a.callAt(i+n) != b.callAt(j+n) {
			return n
		}
	}
	return n
}
