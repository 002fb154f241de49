package dry

import "github.com/ashlar-mem/ashlar/internal/plan/ledger"

// phases follows the moments of a run.
type phases struct {
	done    int // steps
	depth   int // of backward passes: one may run within another
	forward int // of forward calls
}

// firstPhase is what a run begins with: the building of a model, unless nothing
// tells that from the rest.
func (b *builder) firstPhase() string {
	if b.rec.backward || b.rec.forward {
		return ledger.Build
	}
	return "run"
}

// moment is a mark between two events.
func (b *builder) moment(e *event) {
	p := &b.phase
	step := p.done + 1
	switch e.a {
	case forwardBegin:
		// A forward call within a backward pass recomputes what a checkpoint left out.
		if p.forward++; p.forward == 1 && p.depth == 0 {
			b.ledger.Begin(ledger.Forward, step)
		}
	case forwardEnd:
		if p.forward = max(p.forward-1, 0); p.forward == 0 && p.depth == 0 && b.rec.backward {
			b.ledger.Begin(ledger.LossPhase, step)
		}
	case backwardBegin:
		if p.depth++; p.depth == 1 {
			b.ledger.Begin(ledger.Backward, step)
		}
	case backwardEnd:
		p.depth = max(p.depth-1, 0)
	case optimizerBegin:
		b.ledger.Begin(ledger.Step, step)
	case emptyCache:
		b.ledger.EmptyCache()
	case stepDone:
		// What comes between two steps belongs to the next: gradients are dropped, a
		// batch is loaded.
		p.done, p.depth, p.forward = int(e.b), 0, 0
		b.ledger.Begin(ledger.Forward, p.done+1)
	}
}

// endPhases leaves out the phases at the end in which nothing is allocated: the
// run ends, and no step begins.
func (b *builder) endPhases() {
	l := b.ledger
	last := 0
	if n := len(l.Tensors); n > 0 {
		last = int(l.Tensors[n-1].Birth)
	}
	for n := len(l.Phases); n > 1 && l.Phases[n-1].First > last; n-- {
		l.Phases = l.Phases[:n-1]
	}
}

// firstForward finds where the first forward pass begins if nothing marks it: its
// calls before the first backward pass are those that a later pass has before
// its own. If no later pass is like it, it begins when the weights are there. It
// returns -1 if there is no backward pass, or nothing tells which are weights.
func (r *Recording) firstForward() int {
	const tries = 4 // a step may have several passes
	first, done := -1, false
	begin, longest := -1, 0
	seen := 0
	for i := range r.events {
		e := &r.events[i]
		if e.what != moment {
			continue
		}
		switch {
		case e.a == forwardBegin:
			return -1
		case e.a == stepDone:
			done = true
		case e.a == backwardBegin && first < 0:
			first = i
		case e.a == backwardBegin && done && seen < tries:
			seen++
			if at, n := r.alike(first, i); n > longest {
				begin, longest = at, n
			}
		}
	}
	if begin < 0 && first >= 0 {
		begin = r.afterWeights(first)
	}
	return begin
}

// afterWeights returns the event after the call that makes the last weight or
// buffer of those that are told before an event; -1 if none is.
func (r *Recording) afterWeights(before int) int {
	weights := map[int32]bool{}
	for _, e := range r.events[:before] {
		if k := ledger.Kind(e.a); e.what == classed && (k == ledger.Weight || k == ledger.Buffer) {
			for _, s := range r.ids[e.at:][:e.b] {
				weights[s] = true
			}
		}
	}
	end, made := -1, false
	for i, e := range r.events[:before] {
		switch {
		case e.what == born && weights[e.a]:
			end, made = i+1, true
		case e.what == called && made: // a birth comes before its call
			end, made = i+1, false
		}
	}
	return end
}

// alike walks back from two events while the calls before them are of the same
// ops: sizes may differ, as those of batches do. It returns the first of those before a, and how many there are.
func (r *Recording) alike(a, b int) (begin, calls int) {
	begin = -1
	bound := a // the walks do not meet
	// Questions about a tensor, which make none, depend on what was asked before.
	makes := func(e *event) bool { return e.what == called && len(r.kinds[e.a].out) > 0 }
	for a, b = a-1, b-1; ; a, b = a-1, b-1 {
		for a >= 0 && !makes(&r.events[a]) {
			a--
		}
		for b > bound && !makes(&r.events[b]) && !(r.events[b].what == moment && r.events[b].a == stepDone) {
			b--
		}
		if a < 0 || b <= bound || r.events[b].what != called || r.kinds[r.events[a].a].op != r.kinds[r.events[b].a].op {
			return begin, calls
		}
		begin = a
		calls++
	}
}
