package findings

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// A program that loops makes the allocations of its loop's body again and
// again, whatever their sizes. So each loop shows as a family of stacks that
// occur equally often and in turn. Programs have loops inside loops: layers in a
// model, tokens in a request, batches in a step, steps between two checkpoints.
// Loops inside a call of a module are none of the program's. Where a program
// trains, a step is the innermost round that ends with an update; where it does
// not, it is a request: the outermost round that something begins.

const (
	// minRounds is how often something must occur to be a repetition.
	minRounds = 2
	// maxFamilies bounds how many loops are looked at closely.
	maxFamilies = 16
	// maxSame is how many families may have the same number of rounds.
	maxSame = 8
	// halfOfIt: a loop is the program's main matter only if most of what it
	// allocates belongs to it.
	halfOfIt = 0.5
	// oftenEnough is the share of rounds in which a stack must occur to belong
	// to a loop's body: bodies have branches.
	oftenEnough = 0.8
	// atRest is how far above rest memory may be when a step ends, as a share
	// of what the round takes above rest: the next batch may be there already,
	// and a few results may not be dropped yet.
	atRest = 0.05
)

// periodSteps finds the loop whose rounds are the steps.
func periodSteps(t *trace.Trace, l *blockIndex, f *stackFacts, seq *sequence) *Steps {
	if seq.sized {
		return nil // sizes alone do not tell the steps from the layers
	}
	step := stepOf(findFamilies(t, l, f, seq), l, seq)
	if step == nil {
		return nil
	}
	step.begin = seq.earliest(step.begin, l)
	s := &Steps{Source: FromPeriod, Confidence: Guess}
	for i, at := range step.begin {
		s.List = append(s.List, Step{Number: i + 1, Begin: int(seq.events[at]), Complete: true})
	}
	seq.closeSteps(s.List, t.Events.Len())
	n := len(s.List)
	s.List[n-1].Complete = seq.completeLast(s.List)
	s.Repeats = seq.repeats(s.List[:s.Complete()])
	if s.Complete() >= 3 && s.Repeats >= oftenEnough {
		s.Confidence = Likely
	}
	site, _ := timeline.SiteOf(t, l.stack(int(step.begin[0])))
	s.Detail = fmt.Sprintf("the allocations repeat: %d rounds, each begins at %s; %.0f%% of the allocations in the median round come from places that every round passes",
		n, site, 100*s.Repeats)
	return s
}

// stepOf chooses the loop whose rounds are the steps; families has those with
// most rounds first, and all of them train or none does.
func stepOf(families []family, l *blockIndex, seq *sequence) *family {
	if len(families) == 0 {
		return nil
	}
	step := &families[0]
	if !step.trains {
		for i := range families {
			x := &families[i]
			if !slices.ContainsFunc(families[i+1:], func(outer family) bool { return x.leavesInside(&outer, l, seq) }) {
				step = x
				break
			}
		}
		// Without training a step is a request, whatever loops are in it: the
		// outermost loop that the inner one does not begin before.
		inner := step
		for i := range families {
			if x := &families[i]; 2*x.rounds <= inner.rounds && x.first < inner.begin[0] {
				step = x
			}
		}
	}
	// The first or the last round may be cut: then another family of the same
	// loop has one round less, and may begin closer to rest.
	for i := range families {
		if x := &families[i]; x.rounds+1 == step.rounds && x.level < step.level {
			step = x
		}
	}
	return step
}

// earliest moves the beginning of rounds to the place where the first round
// begins. By its stacks a round may begin anywhere in the cycle; earliest takes
// the place at rest that the program passes first. A round may pass it several
// times.
func (s *sequence) earliest(begin []int32, l *blockIndex) []int32 {
	n := len(begin)
	lengths := make([]int32, n-1)
	levels := make([]uint64, n)
	low, peak := ^uint64(0), uint64(0)
	for k, at := range begin {
		levels[k] = l.levelAt(int(s.events[at]))
		low = min(low, levels[k])
		if k > 0 {
			lengths[k-1] = at - begin[k-1]
		}
	}
	for _, live := range l.live[s.events[begin[0]]:s.events[begin[n-1]]] {
		peak = max(peak, live)
	}
	margin := uint64(atRest * float64(peak-min(peak, low)))
	// What lies further before the first round is set-up.
	from := max(0, begin[0]-2*median(lengths))
	type firsts struct {
		at     []int32 // in each piece between beginnings
		rested int     // how many of them are at rest
		piece  int32   // of the last, plus one
	}
	tokens := make([]firsts, s.number)
	k := int32(0)
	for i := from; int(i) < len(s.tokens); i++ {
		for int(k) < n && begin[k] <= i {
			k++
		}
		t := s.tokens[i]
		if t < 0 || tokens[t].piece == k+1 {
			continue
		}
		x := &tokens[t]
		x.piece = k + 1
		x.at = append(x.at, i)
		// Rest may rise from one round to the next.
		if l.levelAt(int(s.events[i])) <= max(levels[max(k-1, 0)], levels[min(int(k), n-1)])+margin {
			x.rested++
		}
	}
	best := begin
	for _, x := range tokens {
		if len(x.at) >= n && x.at[0] < best[0] && 2*x.rested > len(x.at) {
			best = x.at
		}
	}
	return best
}

// repeats returns the share of allocations in the median step whose token all
// steps have. The median, because a few steps may do something besides.
func (s *sequence) repeats(steps []Step) float64 {
	if len(steps) == 0 {
		return 0
	}
	_, always := s.recurring(steps)
	shares := make([]float64, len(steps))
	for k, step := range steps {
		all, of := 0, 0
		for i := s.first(step.Begin); i < s.first(step.End); i++ {
			if t := s.tokens[i]; t >= 0 {
				of++
				if always[t] {
					all++
				}
			}
		}
		shares[k] = float64(all) / float64(max(of, 1))
	}
	slices.Sort(shares)
	return shares[len(shares)/2]
}

// leavesInside reports whether the rounds of x leave memory behind that is
// there until the round of an outer loop ends. The last one of each outer round
// may not: it ends where the outer one does.
func (x *family) leavesInside(outer *family, l *blockIndex, seq *sequence) bool {
	if 2*x.rounds < 3*outer.rounds { // the same loop, but for its ends
		return false
	}
	type bounds struct{ low, high uint64 }
	rounds := make([]bounds, len(outer.begin))
	for j := range outer.begin {
		from, to := int(seq.events[outer.begin[j]]), len(l.live)
		if j+1 < len(outer.begin) {
			to = int(seq.events[outer.begin[j+1]])
		}
		rounds[j].low = l.levelAt(from)
		for _, live := range l.live[from:to] {
			rounds[j].low, rounds[j].high = min(rounds[j].low, live), max(rounds[j].high, live)
		}
	}
	left, inside, j := 0, 0, 0
	for i := 1; i < len(x.begin); i++ {
		for j+1 < len(outer.begin) && outer.begin[j+1] <= x.begin[i-1] {
			j++
		}
		if x.begin[i-1] < outer.begin[j] || j+1 == len(outer.begin) || x.begin[i] >= outer.begin[j+1] {
			continue // ends in another outer round, or in one that may be cut
		}
		inside++
		// Memory that only ever grows is not left for the outer round: it
		// would be gone in the next.
		low := max(rounds[j].low, rounds[j+1].low)
		margin := uint64(atRest * float64(rounds[j].high-rounds[j].low))
		if l.levelAt(int(seq.events[x.begin[i]])) > low+margin {
			left++
		}
	}
	return inside > 0 && 2*left >= inside
}

// tailRounds is the least number of rounds of work that need not free anything:
// what a loop keeps in each of fewer may be its set-up.
const tailRounds = 4

// roundsOf finds the rounds of a loop that may keep all it allocates, such as an
// evaluation that builds a graph: the rarest stack outside of any module that
// comes again and again from an event on, up to the end.
func roundsOf(t *trace.Trace, l *blockIndex, f *stackFacts, seq *sequence, event int) *Steps {
	occ := seq.occurrences()
	first, end := seq.first(event), len(seq.tokens)
	var best []int32
	for token := range seq.number {
		begin := rounds(occ.positions(int32(token)))
		n := len(begin)
		if n < tailRounds || best != nil && n >= len(best) || f.kind(l.stack(int(begin[0]))) != stackPlain {
			continue
		}
		// Over most of the time, and up to the end.
		if 2*int(begin[n-1]-begin[0]) >= end-first && end-int(begin[n-1]) <= 2*int(begin[n-1]-begin[n-2]) {
			best = begin
		}
	}
	if best == nil {
		return nil
	}
	s := &Steps{Source: FromPeriod, Confidence: Guess}
	for i, at := range best {
		s.List = append(s.List, Step{Number: i + 1, Begin: int(seq.events[at]), End: t.Events.Len()})
		if i > 0 {
			s.List[i-1].End, s.List[i-1].Complete = s.List[i].Begin, true
		}
	}
	if s.Repeats = seq.repeats(s.List[:s.Complete()]); s.Repeats >= oftenEnough {
		s.Confidence = Likely
	}
	site, _ := timeline.SiteOf(t, l.stack(int(best[0])))
	s.Detail = fmt.Sprintf("%s comes again and again: %d rounds", site, len(best))
	return s
}

// rounds leaves out what follows another one directly: one line may allocate
// several times.
func rounds(positions []int32) (out []int32) {
	for i, p := range positions {
		if i == 0 || p != positions[i-1]+1 {
			out = append(out, p)
		}
	}
	return out
}
