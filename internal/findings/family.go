package findings

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/trace"
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
	level uint64 // the median of active bytes before them
	// trains reports whether most rounds have a backward pass or an optimizer.
	trains bool
	first  int32 // the first allocation of any of tokens
}

// findFamilies returns the loops of the program, most rounds first.
func findFamilies(t *trace.Trace, l *blockIndex, f *stackFacts, seq *sequence) []family {
	occ := seq.occurrences()
	byCount := map[int][]int32{}
	for token := range seq.number {
		if n := len(occ.positions(int32(token))); n >= minRounds {
			byCount[n] = append(byCount[n], int32(token))
		}
	}
	var out []family
	for _, n := range slices.Sorted(maps.Keys(byCount)) {
		tokens := byCount[n]
		slices.SortFunc(tokens, func(a, b int32) int { return cmp.Compare(occ.positions(a)[0], occ.positions(b)[0]) })
		// Set-up may have stacks that occur as often as there are steps, so
		// one count may hold several families.
		for range min(len(tokens), maxSame) {
			if len(tokens) == 0 {
				break
			}
			lead, rest := occ.positions(tokens[0]), []int32(nil)
			x := family{rounds: n, first: lead[0]}
			for _, token := range tokens {
				if inTurn(lead, occ.positions(token)) {
					x.tokens = append(x.tokens, token)
				} else {
					rest = append(rest, token)
				}
			}
			tokens = rest
			if !insideCall(t, l, f, occ, x.tokens) {
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
		return x.trains != main.trains || !x.mainMatter(l, seq) || !x.trains && x.covers < halfOfIt*main.covers || !x.runsThrough(&main)
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

func (o *occurrences) positions(token int32) []int32 { return o.flat[o.begin[token]:o.begin[token+1]] }

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

// inTurn reports whether b occurs once between any two occurrences of a.
func inTurn(a, b []int32) bool {
	for i := range a {
		if b[i] < a[i] || i+1 < len(a) && b[i] >= a[i+1] {
			return false
		}
	}
	return true
}

// insideCall reports whether all of a family happens inside one call of an
// nn.Module or of an optimizer: a loop over layers, not over steps.
func insideCall(t *trace.Trace, l *blockIndex, f *stackFacts, occ *occurrences, tokens []int32) bool {
	stack := func(token int32) []trace.FrameID {
		return t.Stacks.Frames(l.stack(int(occ.positions(token)[0])))
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
func (x *family) rotate(l *blockIndex, seq *sequence, occ *occurrences) {
	levels := make([]uint64, x.rounds)
	for k, token := range x.tokens {
		at := occ.positions(token)
		for i, a := range at {
			levels[i] = l.levelAt(int(seq.events[a]))
		}
		slices.Sort(levels)
		if level := levels[len(levels)/2]; k == 0 || level < x.level {
			x.level, x.begin = level, at
		}
	}
}

// train finds out whether most rounds train.
func (x *family) train(l *blockIndex, f *stackFacts) {
	n := 0
	for k := 1; k < len(x.begin); k++ {
		for i := x.begin[k-1]; i < x.begin[k]; i++ {
			if kind := f.kind(l.stack(int(i))); kind == stackBackward || kind == stackRecompute || kind == stackOptimizer {
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

// mainMatter reports whether a loop may be the program's main loop: it trains, or
// most of what is allocated from its beginning on belongs to it.
func (x *family) mainMatter(l *blockIndex, seq *sequence) bool {
	return (x.trains || x.since >= halfOfIt) && x.frees(l, seq)
}

// frees reports whether most rounds also free something. A loop that only
// allocates builds a list, such as the parameters of a model.
func (x *family) frees(l *blockIndex, seq *sequence) bool {
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

// runsThrough reports whether the loop runs in nearly all rounds of another
// one, or the other way round. A loop of its own before or after does not.
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

// join merges the rounds that lead to one update: several batches whose gradients
// add up, or several passes before one backward pass. The stacks of optimizers
// are no loop of their own, because how often they occur says nothing; some
// allocate in their first step only.
func (x *family) join(l *blockIndex, seq *sequence, f *stackFacts) {
	for _, last := range []stackKind{stackOptimizer, stackBackward} {
		begin := []int32{x.begin[0]}
		for k := 1; k < len(x.begin); k++ {
			for i := x.begin[k-1]; i < x.begin[k]; i++ {
				if f.kind(l.stack(int(i))) == last {
					begin = append(begin, x.begin[k])
					break
				}
			}
		}
		if len(begin) <= minRounds {
			continue
		}
		x.begin, x.rounds = begin, len(begin)
		levels := make([]uint64, len(begin))
		for k, at := range begin {
			levels[k] = l.levelAt(int(seq.events[at]))
		}
		x.level = median(levels)
		return
	}
}
