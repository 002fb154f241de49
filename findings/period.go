package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// A program that loops makes the allocations of its loop's body again and
// again, whatever their sizes. So each loop shows as a family of stacks that
// occur equally often and in turn. Programs have loops inside loops: layers in a
// model, tokens in a request, micro-batches in a step, steps between two
// checkpoints. A step is the innermost round after which memory is back at
// rest: layers and tokens leave something behind for the rest of the step.

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

// family is the tokens of one loop that occur once a round.
type family struct {
	tokens []int32
	rounds int
	covers float64 // share of all allocations whose token belongs to the body
	since  float64 // the same of the allocations from the first round on
	// begin are the allocations (positions in the sequence) with which rounds
	// begin: those of the token before which memory is lowest.
	begin []int32
	token int32
	level uint64 // the median of active bytes before them
	// trains tells that most rounds have a backward pass or an optimizer.
	trains bool
	first  int32 // the first allocation of any of tokens
}

// periodSteps finds the loop whose rounds are the steps.
func periodSteps(t *trace.Trace, l *lives, f *stackFacts, seq *sequence) *Steps {
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
	site, _ := timeline.SiteOf(t, l.blocks[l.older+int(step.begin[0])].stack)
	s.Detail = fmt.Sprintf("the allocations repeat: %d rounds, each begins at %s; %.0f%% of the allocations in the median round come from places that every round passes",
		n, site, 100*s.Repeats)
	return s
}

// stepOf chooses the loop whose rounds are the steps; families has those with
// most rounds first.
func stepOf(families []family, l *lives, seq *sequence) *family {
	var step *family
	for i := range families {
		x := &families[i]
		if !slices.ContainsFunc(families[i+1:], func(outer family) bool { return x.leavesInside(&outer, l, seq) }) {
			step = x
			break
		}
	}
	if step == nil {
		return nil
	}
	if !step.trains {
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

// earliest moves the beginning of rounds to the place where the first one
// begins. A round may begin anywhere in the cycle as far as its stacks go; of the
// places where memory is at rest the one that the program passes first is meant.
// It may be one that a round passes several times.
func (s *sequence) earliest(begin []int32, l *lives) []int32 {
	n := len(begin)
	lengths := make([]int32, n-1)
	levels := make([]uint64, n)
	low, peak := ^uint64(0), uint64(0)
	for k, at := range begin {
		levels[k] = l.at(int(s.events[at]))
		low = min(low, levels[k])
		if k > 0 {
			lengths[k-1] = at - begin[k-1]
		}
	}
	for _, live := range l.live[s.events[begin[0]]:s.events[begin[n-1]]] {
		peak = max(peak, live)
	}
	room := uint64(atRest * float64(peak-min(peak, low)))
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
		if l.at(int(s.events[i])) <= max(levels[max(k-1, 0)], levels[min(int(k), n-1)])+room {
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

// join makes one round of those that lead to one step of an optimizer: several
// batches whose gradients add up. The stacks of optimizers are not looked at as
// a loop of their own, because how often they occur says nothing.
func (x *family) join(l *lives, seq *sequence, f *stackFacts) {
	begin := []int32{x.begin[0]}
	for k := 1; k < len(x.begin); k++ {
		for i := x.begin[k-1]; i < x.begin[k]; i++ {
			if f.kinds[l.blocks[l.older+int(i)].stack] == stackOptimizer {
				begin = append(begin, x.begin[k])
				break
			}
		}
	}
	if len(begin) <= minRounds || len(begin) == len(x.begin) {
		return // some optimizers allocate in their first step only
	}
	x.begin, x.rounds = begin, len(begin)
	levels := make([]uint64, len(begin))
	for k, at := range begin {
		levels[k] = l.at(int(seq.events[at]))
	}
	x.level = median(levels)
}

// repeats is the share of allocations in the median step whose token all steps
// have. The median, because a few steps may do something besides.
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

// findFamilies returns the loops of the program, most rounds first.
func findFamilies(t *trace.Trace, l *lives, f *stackFacts, seq *sequence) []family {
	occ := seq.occurrences()
	byCount := map[int][]int32{}
	for token := range seq.number {
		if n := len(occ.of(int32(token))); n >= minRounds {
			byCount[n] = append(byCount[n], int32(token))
		}
	}
	var out []family
	for _, n := range slices.Sorted(maps.Keys(byCount)) {
		tokens := byCount[n]
		slices.SortFunc(tokens, func(a, b int32) int { return cmp.Compare(occ.of(a)[0], occ.of(b)[0]) })
		// Set-up may have stacks that occur as often as there are steps, so
		// one count may hold several families.
		for range min(len(tokens), maxSame) {
			if len(tokens) == 0 {
				break
			}
			lead, rest := occ.of(tokens[0]), []int32(nil)
			x := family{rounds: n, first: lead[0]}
			for _, token := range tokens {
				if inTurn(lead, occ.of(token)) {
					x.tokens = append(x.tokens, token)
				} else {
					rest = append(rest, token)
				}
			}
			tokens = rest
			if !insideCall(t, l, f, seq, occ, x.tokens) {
				out = append(out, x)
			}
		}
	}
	slices.SortFunc(out, func(a, b family) int {
		return cmp.Or(cmp.Compare(len(b.tokens), len(a.tokens)), cmp.Compare(b.rounds, a.rounds), cmp.Compare(a.tokens[0], b.tokens[0]))
	})
	out = out[:min(len(out), maxFamilies)]
	var best *family
	for i := range out {
		x := &out[i]
		x.rotate(l, seq, occ)
		x.join(l, seq, f)
		x.train(l, f)
		x.cover(seq)
		if !x.mainMatter(l, seq) {
			continue
		}
		// Training goes before whatever else the program does, such as
		// evaluating on more batches than it trains on.
		if best == nil || x.trains && !best.trains || x.trains == best.trains && x.covers > best.covers {
			best = x
		}
	}
	if best == nil {
		return nil
	}
	main := *best // the slice is shuffled now
	out = slices.DeleteFunc(out, func(x family) bool {
		return x.trains != main.trains || !x.mainMatter(l, seq) || x.covers < halfOfIt*main.covers || !x.runsThrough(&main)
	})
	slices.SortFunc(out, func(a, b family) int {
		return cmp.Or(cmp.Compare(b.rounds, a.rounds), cmp.Compare(a.level, b.level), cmp.Compare(a.tokens[0], b.tokens[0]))
	})
	return out
}

// occurrences lists where each token occurs.
type occurrences struct {
	flat  []int32
	begin []int32
}

func (o *occurrences) of(token int32) []int32 { return o.flat[o.begin[token]:o.begin[token+1]] }

func (s *sequence) occurrences() *occurrences {
	o := &occurrences{begin: make([]int32, s.number+1)}
	for _, t := range s.tokens {
		if t >= 0 {
			o.begin[t+1]++
		}
	}
	for t := range s.number {
		o.begin[t+1] += o.begin[t]
	}
	o.flat = make([]int32, o.begin[s.number])
	next := slices.Clone(o.begin)
	for i, t := range s.tokens {
		if t >= 0 {
			o.flat[next[t]] = int32(i)
			next[t]++
		}
	}
	return o
}

// inTurn tells whether b occurs once between any two occurrences of a.
func inTurn(a, b []int32) bool {
	for i := range a {
		if b[i] < a[i] || i+1 < len(a) && b[i] >= a[i+1] {
			return false
		}
	}
	return true
}

// insideCall tells whether all of a family happens inside one call of an
// nn.Module or of an optimizer: a loop over layers, not over steps.
func insideCall(t *trace.Trace, l *lives, f *stackFacts, seq *sequence, occ *occurrences, tokens []int32) bool {
	if seq.sized {
		return false
	}
	stack := func(token int32) []trace.FrameID {
		return t.Stacks.Frames(l.blocks[l.older+int(occ.of(token)[0])].stack)
	}
	common := stack(tokens[0])
	for _, token := range tokens[1:] {
		frames := stack(token)
		n := 0
		for n < len(common) && n < len(frames) && common[len(common)-1-n] == frames[len(frames)-1-n] {
			n++
		}
		common = common[len(common)-n:]
	}
	for _, frame := range common {
		if f.frames[frame]&(markModule|markOptimizer|markBackward) != 0 {
			return true
		}
	}
	return false
}

// rotate chooses the token before which memory is lowest, the first of equals.
func (x *family) rotate(l *lives, seq *sequence, occ *occurrences) {
	levels := make([]uint64, x.rounds)
	for k, token := range x.tokens {
		at := occ.of(token)
		for i, a := range at {
			levels[i] = l.at(int(seq.events[a]))
		}
		slices.Sort(levels)
		if level := levels[len(levels)/2]; k == 0 || level < x.level {
			x.level, x.token, x.begin = level, token, at
		}
	}
}

// train finds out whether most rounds train.
func (x *family) train(l *lives, f *stackFacts) {
	n := 0
	for k := 1; k < len(x.begin); k++ {
		for i := x.begin[k-1]; i < x.begin[k]; i++ {
			if kind := f.kind(l.blocks[l.older+int(i)].stack); kind == stackBackward || kind == stackRecompute || kind == stackOptimizer {
				n++
				break
			}
		}
	}
	x.trains = 2*n >= len(x.begin)-1
}

// cover finds the share of all allocations that belongs to the body.
func (x *family) cover(seq *sequence) {
	rounds := make([]int32, seq.number)
	count := make([]int32, seq.number)
	last := make([]int32, seq.number)
	round := 0
	for i := int(x.begin[0]); i < len(seq.tokens); i++ {
		for round < len(x.begin) && int(x.begin[round]) <= i {
			round++
		}
		if t := seq.tokens[i]; t >= 0 {
			count[t]++
			if last[t] != int32(round) {
				last[t] = int32(round)
				rounds[t]++
			}
		}
	}
	sum, since, all := 0, 0, 0
	for i, t := range seq.tokens {
		if t >= 0 {
			all++
			if i >= int(x.begin[0]) {
				since++
			}
		}
	}
	for t, n := range rounds {
		if float64(n) >= oftenEnough*float64(x.rounds) {
			sum += int(count[t])
		}
	}
	x.covers, x.since = float64(sum)/float64(max(all, 1)), float64(sum)/float64(max(since, 1))
}

// mainMatter tells whether a loop may be what the program is about: it trains,
// or most of what is allocated from its beginning on belongs to it.
func (x *family) mainMatter(l *lives, seq *sequence) bool {
	return (x.trains || x.since >= halfOfIt) && x.frees(l, seq)
}

// frees tells whether most rounds also free something. A loop that only
// allocates builds a list, such as the parameters of a model.
func (x *family) frees(l *lives, seq *sequence) bool {
	rounds := 0
	for k := 1; k < len(x.begin); k++ {
		for i := seq.events[x.begin[k-1]] + 1; i < seq.events[x.begin[k]]; i++ {
			if l.live[i] < l.live[i-1] {
				rounds++
				break
			}
		}
	}
	return 2*rounds >= len(x.begin)-1
}

// runsThrough tells whether the loop runs in nearly all rounds of another one,
// or the other way round. A loop of its own before or after does not.
func (x *family) runsThrough(other *family) bool {
	inner, outer := x, other
	if x.rounds < other.rounds {
		inner, outer = other, x
	}
	hit, last := 0, -1
	j := 0
	for _, at := range inner.begin {
		for j+1 < len(outer.begin) && outer.begin[j+1] <= at {
			j++
		}
		if at >= outer.begin[j] && j != last {
			hit, last = hit+1, j
		}
	}
	return float64(hit) >= oftenEnough*float64(len(outer.begin)-1)
}

// leavesInside tells whether the rounds of x leave memory behind that is there
// until the round of an outer loop ends. The last one of each outer round may
// not: it ends where the outer one does.
func (x *family) leavesInside(outer *family, l *lives, seq *sequence) bool {
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
		rounds[j].low = l.at(from)
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
		room := uint64(atRest * float64(rounds[j].high-rounds[j].low))
		if l.at(int(seq.events[x.begin[i]])) > low+room {
			left++
		}
	}
	return inside > 0 && 2*left >= inside
}
