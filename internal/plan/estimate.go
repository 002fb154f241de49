package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// estimate is what layers take, from the ledgers of two plans.
type estimate struct {
	base     uint64   // there at the beginning of a step
	saved    []uint64 // kept by a layer that is not recomputed
	kept     []uint64 // kept by one that is
	after    []uint64 // gradients of what comes after a layer
	work     []float64
	end      uint64 // beside what layers keep, when the forward pass ends: the loss
	backward uint64 // beside that, while a layer is recomputed and goes backwards
}

func newEstimate(none, full *candidate) *estimate {
	e := &estimate{work: workOf(none.job).layers}
	n := len(e.work)
	e.base = liveAt(none.planned, none.run.ledger.Scored()-1)
	e.saved, e.kept = keptByLayer(none.planned, n), keptByLayer(full.planned, n)
	e.after = gradientsAfter(none.planned, n)
	if sum := e.base + total(e.saved); none.allocated > sum {
		e.end = none.allocated - sum
	}
	// The full recomputation binds at some layer, or where the pass turns.
	most := uint64(0)
	before := uint64(0)
	for i := range n {
		most = max(most, e.base+before+e.saved[i]+e.after[i])
		before += e.kept[i]
	}
	if full.allocated > most && full.allocated > e.base+before+e.end {
		e.backward = full.allocated - most
	}
	return e
}

func total(all []uint64) uint64 {
	var sum uint64
	for _, n := range all {
		sum += n
	}
	return sum
}

// liveAt is what is allocated after an event.
func liveAt(p *planned, event int) uint64 {
	var sum uint64
	for i := range p.run.ledger.Tensors {
		if p.run.ledger.Tensors[i].Live(event) {
			sum += p.sizes[i]
		}
	}
	return sum
}

// keptByLayer adds up what each layer leaves to the backward pass of the scored
// step.
func keptByLayer(p *planned, n int) []uint64 {
	l := p.run.ledger
	out := make([]uint64, n)
	from, turn := l.Scored(), len(l.Events)
	for _, ph := range l.Phases {
		if ph.First >= from && ph.Name == ledger.Backward {
			turn = ph.First
			break
		}
	}
	layers := newLayerNames(l)
	for i := range l.Tensors {
		t := &l.Tensors[i]
		if int(t.Birth) >= from && int(t.Birth) < turn && t.Live(turn-1) {
			if k := layers.layer(t.Module); k >= 0 && k < n {
				out[k] += p.sizes[i]
			}
		}
	}
	return out
}

// gradientsAfter is for each layer what the gradients of later ones take, and of
// what comes behind the last.
func gradientsAfter(p *planned, n int) []uint64 {
	l := p.run.ledger
	own := make([]uint64, n+1)
	layers := newLayerNames(l)
	from := l.Scored()
	for i := range l.Tensors {
		t := &l.Tensors[i]
		if t.Kind != ledger.Gradient || int(t.Birth) < from {
			continue
		}
		if ph := l.PhaseAt(int(t.Birth)); ph.Name != ledger.Backward || t.Death != ledger.Lives && l.PhaseAt(int(t.Death)).Name == ledger.Backward {
			continue
		}
		k := layers.layer(t.Module)
		if k < 0 || k > n {
			k = n
		}
		own[k] += p.sizes[i]
	}
	out := make([]uint64, n)
	sum := own[n]
	for k := n - 1; k >= 0; k-- {
		out[k] = sum
		sum += own[k]
	}
	return out
}

// least is the smallest budget up to a bound that a choice can be kept within.
func (e *estimate) least(bound uint64) uint64 {
	low, high := e.base, bound
	for high-min(low, high) > bound/nearEnough {
		if middle := low + (high-low)/2; e.cheapest(middle) != nil {
			high = middle
		} else {
			low = middle
		}
	}
	return min(low, bound)
}

// longest is how many layers may be recomputed together.
const longest = 12

// state is a way to treat the first layers.
type state struct {
	kept   uint64
	work   float64
	group  int // the last: its length, below 0 if it is not recomputed
	before *state
}

// cheapest is the choice that repeats least within a budget; nil if there is
// none.
func (e *estimate) cheapest(budget uint64) []int {
	n := len(e.saved)
	at := make([][]*state, n+1)
	at[0] = []*state{{}}
	for i := range n {
		at[i] = front(at[i])
		for _, s := range at[i] {
			if e.base+s.kept+e.saved[i]+e.after[i] <= budget {
				at[i+1] = append(at[i+1], &state{s.kept + e.saved[i], s.work, -1, s})
			}
			var saved uint64
			var work float64
			for m := 1; m <= longest && i+m <= n; m++ {
				saved += e.saved[i+m-1]
				work += e.work[i+m-1]
				if e.base+s.kept+saved+e.after[i+m-1]+e.backward > budget {
					break
				}
				at[i+m] = append(at[i+m], &state{s.kept + e.kept[i], s.work + work, m, s})
			}
		}
	}
	var best *state
	for _, s := range front(at[n]) {
		if e.base+s.kept+e.end <= budget && (best == nil || s.work < best.work) {
			best = s
		}
	}
	if best == nil {
		return nil
	}
	var groups []int
	for s := best; s.before != nil; s = s.before {
		groups = append(groups, s.group)
	}
	slices.Reverse(groups)
	return joined(groups)
}

// front leaves out states that keep no less and repeat no less than another.
func front(all []*state) []*state {
	slices.SortStableFunc(all, func(a, b *state) int {
		switch {
		case a.kept != b.kept && a.kept < b.kept, a.kept == b.kept && a.work < b.work:
			return -1
		case a.kept == b.kept && a.work == b.work:
			return 0
		}
		return 1
	})
	out := all[:0]
	for _, s := range all {
		if len(out) == 0 || s.work < out[len(out)-1].work {
			out = append(out, s)
		}
	}
	return out
}

// joined puts runs of layers that are not recomputed together.
func joined(groups []int) []int {
	var out []int
	for _, k := range groups {
		if n := len(out); k < 0 && n > 0 && out[n-1] < 0 {
			out[n-1] += k
			continue
		}
		out = append(out, k)
	}
	return out
}

// layerNames finds the layer of a module by its name: the first number of its
// path, as in model.layers.3.mlp.
type layerNames struct {
	ledger *ledger.Ledger
	seen   map[ledger.Name]int
}

func newLayerNames(l *ledger.Ledger) *layerNames {
	return &layerNames{ledger: l, seen: map[ledger.Name]int{}}
}

// layer returns the number of the layer, or -1.
func (n *layerNames) layer(module ledger.Name) int {
	k, ok := n.seen[module]
	if !ok {
		k = -1
		for part := range strings.SplitSeq(n.ledger.Text(module), ".") {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 {
				k = i
				break
			}
		}
		n.seen[module] = k
	}
	return k
}
