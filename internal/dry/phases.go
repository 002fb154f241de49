package dry

import "github.com/ashlar-mem/ashlar/internal/plan/ledger"

// phases follows the moments of a run.
type phases struct {
	done    int // steps
	depth   int // of backward passes: one may run within another
	forward int // of forward calls
	next    bool
}

// moment is a mark between two events.
func (b *builder) moment(e *event) {
	p := &b.phase
	step := p.done + 1
	switch e.a {
	case forwardBegin:
		// A forward call within a backward pass recomputes what a checkpoint left out.
		if p.forward++; p.forward == 1 && p.depth == 0 {
			p.begin(b.ledger, ledger.Forward, step)
		}
	case forwardEnd:
		if p.forward = max(p.forward-1, 0); p.forward == 0 && p.depth == 0 && b.rec.backward {
			p.begin(b.ledger, ledger.LossPhase, step)
		}
	case backwardBegin:
		if p.depth++; p.depth == 1 {
			p.begin(b.ledger, ledger.Backward, step)
		}
	case backwardEnd:
		p.depth = max(p.depth-1, 0)
	case optimizerBegin:
		p.begin(b.ledger, ledger.Step, step)
	case emptyCache:
		b.ledger.EmptyCache()
	case stepDone:
		p.done, p.next = int(e.b), true
		p.depth, p.forward = 0, 0
	}
}

func (p *phases) begin(l *ledger.Ledger, name string, step int) {
	p.next = false
	l.Begin(name, step)
}

// work says that something is allocated. The first allocation after a step
// belongs to the next: what is freed in between does not.
func (p *phases) work(l *ledger.Ledger) {
	if p.next {
		p.begin(l, ledger.Forward, p.done+1)
	}
}
