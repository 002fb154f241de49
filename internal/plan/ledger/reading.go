package ledger

import "sort"

// The phases of a run.
const (
	Build     = "build"
	Forward   = "forward"
	LossPhase = "loss"
	Backward  = "backward"
	Step      = "optimizer"
	Saving    = "save"
	Evaluate  = "evaluate"
	Prefill   = "prefill"
	Decode    = "decode"
)

// Scored is the first event of the part whose peaks are reported: the last step
// of training, when the optimizer's state is there, or all of a generation. It
// is where a measured run calls torch.cuda.reset_peak_memory_stats.
func (l *Ledger) Scored() int {
	if l.Whole {
		return 0
	}
	return l.LastStep()
}

// LastStep is the first event of the last step of training, or of a generation.
func (l *Ledger) LastStep() int {
	last := 0
	for _, p := range l.Phases {
		if p.Name == Prefill || p.Name == Decode {
			last = 0
			break
		}
		last = max(last, p.Step)
	}
	for _, p := range l.Phases {
		if p.Name != Build && (last == 0 || p.Step == last) {
			return p.First
		}
	}
	return 0
}

// Peak is the most bytes that are there at a time in the part that is reported.
func (l *Ledger) Peak() int64 {
	var live, most int64
	from := l.Scored()
	for i, e := range l.Events {
		switch {
		case e >= 0:
			live += l.Tensors[e].Bytes
		case e != EmptyCache:
			live -= l.Tensors[^e].Bytes
		}
		if i >= from {
			most = max(most, live)
		}
	}
	return most
}

// PhaseAt returns the phase that an event lies in. Events before the first
// phase belong to the first one.
func (l *Ledger) PhaseAt(event int) Phase {
	i := sort.Search(len(l.Phases), func(i int) bool { return l.Phases[i].First > event })
	if i == 0 {
		if len(l.Phases) == 0 {
			return Phase{}
		}
		return l.Phases[0]
	}
	return l.Phases[i-1]
}

// Live reports whether a tensor is allocated after an event.
func (t *Tensor) Live(event int) bool {
	return int(t.Birth) <= event && (t.Death == Lives || int(t.Death) > event)
}

// Purposes says what each tensor is for. It is the kind it was entered with,
// but for temporaries that the forward pass leaves to the backward pass: those
// are activations, which an op that makes a tensor cannot know.
func (l *Ledger) Purposes() []Kind {
	out := make([]Kind, len(l.Tensors))
	// ends is for each event of a forward pass or a loss where that ends.
	next := 0
	var forward bool
	var end int32
	for i := range l.Tensors {
		t := &l.Tensors[i]
		for next < len(l.Phases) && l.Phases[next].First <= int(t.Birth) {
			forward = l.Phases[next].forward()
			next++
			if end > int32(l.Phases[next-1].First) {
				continue // phases of one forward pass end together
			}
			end = int32(len(l.Events))
			for k := next; k < len(l.Phases); k++ {
				if !l.Phases[k].forward() {
					end = int32(l.Phases[k].First)
					break
				}
			}
		}
		out[i] = t.Kind
		if t.Kind == Temporary && forward && (t.Death == Lives || t.Death >= end) {
			out[i] = Activation
		}
	}
	return out
}

func (p *Phase) forward() bool { return p.Name == Forward || p.Name == LossPhase }
