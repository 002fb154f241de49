package prognosis

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/trace"
)

// How far something carries a run.
const (
	Step    = "step"    // to the end of the step that failed; nothing is known beyond
	Steps   = "steps"   // so many more steps, and no further
	Steady  = "steady"  // on and on, as long as steps are no larger than those seen
	Unknown = "unknown" // the recording does not tell
)

// Carries is how far a run gets.
type Carries struct {
	Kind string `json:"kind"`
	// Steps is how many steps end from the one that failed on; nil if that is not
	// known or has no end.
	Steps *int `json:"steps"`
	// RestsOn says what the answer rests on.
	RestsOn string `json:"rests_on"`
}

// Fails reports whether not even the step that failed comes to its end.
func (c *Carries) Fails() bool { return c.Kind == Steps && c.Steps != nil && *c.Steps == 0 }

// Prognosis continues a recording that ends in a failure.
type Prognosis struct {
	// Matched reports whether an earlier step shows how the failing one goes on.
	Matched bool
	// Template is the position in the list of steps of that step.
	Template int
	// Scale is how much larger the failing step is than its template.
	Scale float64
	// Need is what the failing step needs at least, however blocks are placed.
	Need uint64
	// Ordinary is the most that an earlier step needed, the first excluded; 0 if
	// there is no other.
	Ordinary uint64
	// Series is what the request repeats, if no earlier step shows it.
	Series *Series
	// Layers is what a first forward pass still needs, if it is one through equal
	// layers.
	Layers *Layers
	// KeptPerStep is what each further step leaves behind.
	KeptPerStep uint64
	// Growth is what each step adds, if that is known from elsewhere and more than
	// KeptPerStep: a buffer that is replaced by a larger one.
	Growth uint64

	history *history
	scale   *scale
	chain   *chain // nil if not Matched and nothing was changed
}

// Request is a request that failed.
type Request struct {
	replay.Call
	Stack trace.StackID
	Cut   int // the number of calls before it
	Event int
	// First is the event at which the first step begins if none is marked.
	First int
	// InModule: the request is made inside a module, whose sizes follow others by
	// chance only.
	InModule bool
}

// New continues a recording from a failed request on.
func New(p *replay.Program, steps *findings.Steps, r Request) *Prognosis {
	h := newHistory(p, steps, r)
	out := &Prognosis{history: h, Need: h.level + tight.Round(r.Size)}
	if h.failing() >= 1 {
		out.match()
	}
	if !out.Matched {
		if !r.InModule {
			out.Series = h.findSeries()
		}
		if out.Series != nil {
			out.Need += out.Series.ToCome
		} else if out.Layers = h.findLayers(); out.Layers != nil {
			out.Need += out.Layers.ToCome
		}
	}
	return out
}

// Allocations returns how many allocations the recording has before the failure.
// The methods below take a position among them.
func (p *Prognosis) Allocations() int { return len(p.history.allocs) }

// Position returns which of the allocations made a recorded tensor; -1 if it is older than the recording.
func (p *Prognosis) Position(tensor int) int { return int(p.history.at[tensor]) }

// Event returns the event of an allocation.
func (p *Prognosis) Event(position int) int {
	return p.history.program.Call(int(p.history.allocs[position].call)).Event
}

// Size returns the requested size of an allocation.
func (p *Prognosis) Size(position int) uint64 { return p.history.allocs[position].size }

// Kept reports whether nobody frees an allocation of a step, nor its counterparts
// in the steps before.
func (p *Prognosis) Kept(position int) bool {
	return p.history.allocs[position].step >= 0 && p.history.age(position) == forever
}

// Live reports whether an allocation is there when the request fails.
func (p *Prognosis) Live(position int) bool { return p.history.allocs[position].freed < 0 }

// Failing returns the first allocation of the step that failed.
func (p *Prognosis) Failing() int { return p.history.sinceFailing() }

// compared is how many earlier steps are looked at.
const compared = 16

// candidates returns the complete steps that have the request's counterpart,
// without the first unless it is the only one.
func (p *Prognosis) candidates() (steps []int) {
	h := p.history
	for s := h.failing() - 1; s >= 0 && len(steps) < compared; s-- {
		if s == 0 && len(steps) > 0 {
			break
		}
		if _, ok := h.find(s, h.wanted); ok {
			steps = append(steps, s)
		}
	}
	return steps
}

// match finds the template and builds the chains.
func (p *Prognosis) match() {
	h := p.history
	steps := p.candidates()
	if len(steps) == 0 {
		return
	}
	best, bestScore := -1, math.Inf(-1)
	for _, s := range steps {
		alike, r := h.alike(s)
		// Steps of the same make first, then of the same size.
		if score := 10*alike - math.Abs(math.Log(r)); score > bestScore {
			best, bestScore = s, score
		}
	}
	if _, ok := h.find(0, h.wanted); ok && !slices.Contains(steps, 0) {
		steps = append(steps, 0)
	}
	sc := newScale(h, best, steps)
	p.Matched, p.Template, p.Scale = true, best, sc.before
	p.scale = sc
	p.chain = p.continued(Edit{})
	p.Need, p.KeptPerStep = p.chain.peaks[0], p.chain.keptPerStep()
	p.Ordinary = p.ordinary()
}

// continued finishes the failing step as its template went, and goes on with
// another of its size and with earlier steps.
func (p *Prognosis) continued(edit Edit) *chain {
	h := p.history
	c := newChain(h, edit)
	at, _ := h.find(p.Template, h.wanted)
	c.expect(p.Template)
	request := h.request
	c.play(p.Template, int(h.allocs[at].call), p.scale.size, &request)
	if p.Scale > 1 { // no step before was as large
		c.play(p.Template, h.begin[p.Template], p.scale.size, nil)
	}
	for _, s := range orders(p.further()) {
		c.play(s, h.begin[s], func(i int) uint64 { return h.allocs[i].size }, nil)
	}
	return c
}

// keptPerStep returns what a further step leaves behind, on average.
func (c *chain) keptPerStep() uint64 {
	var kept uint64
	for _, k := range c.kept[1:] {
		kept += k
	}
	return kept / uint64(max(len(c.kept)-1, 1))
}

// With returns the prognosis for a changed program.
func (p *Prognosis) With(edit Edit) *Prognosis {
	out := *p
	out.Growth = 0
	if p.Matched {
		out.chain = p.continued(edit)
		out.Need, out.KeptPerStep = out.chain.peaks[0], out.chain.keptPerStep()
	} else {
		out.chain = newChain(p.history, edit)
		out.chain.request(-1)
		out.Need = out.chain.level
		if p.Layers != nil {
			out.Need += p.Layers.toCome(p.history, &edit)
		}
	}
	return &out
}

// alike returns how much of the failing step so far has a counterpart in another
// step, and how much larger it is now.
func (h *history) alike(step int) (share, ratio float64) {
	q := h.failing()
	found, all := 0, 1
	var now, then uint64
	for i := h.first[q]; i < h.first[q+1]; i++ {
		all++
		if j, ok := h.twin(i, step); ok {
			found++
			now += h.allocs[i].size
			then += h.allocs[j].size
		}
	}
	now, then = now+h.request.Size, then+1
	if j, ok := h.find(step, h.wanted); ok {
		found++
		then += h.allocs[j].size
	}
	return float64(found) / float64(all), float64(now+1) / float64(then)
}

// further returns the complete steps to go on with, those of the first excluded.
func (p *Prognosis) further() []int {
	h := p.history
	var out []int
	most := max(h.cut/4, 100_000) // calls
	for s := h.failing() - 1; s >= 0 && len(out) < compared; s-- {
		if s == 0 && len(out) > 0 {
			break
		}
		if most -= h.end(s) - h.begin[s]; most < 0 && len(out) > 0 {
			break
		}
		out = append(out, s)
	}
	slices.Reverse(out)
	return out
}

// orders returns steps in several orders, one after the other: as recorded,
// backwards, and shuffled. What lasts through them does not rest on one of them.
func orders(steps []int) []int {
	out := slices.Clone(steps)
	back := slices.Clone(steps)
	slices.Reverse(back)
	mixed := slices.Clone(steps)
	rng := rand.New(rand.NewPCG(1, uint64(len(steps))))
	rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return append(append(out, back...), mixed...)
}

// ordinary returns the highest level of the complete steps but the first.
func (p *Prognosis) ordinary() (most uint64) {
	h := p.history
	level := h.level
	// Backwards from the failure.
	for i, step := h.cut-1, h.failing(); i >= 0 && step >= 1; i-- {
		for step >= 1 && i < h.begin[step] {
			step--
		}
		if step < h.failing() && step >= 1 {
			most = max(most, level)
		}
		switch c := h.program.Call(i); c.Kind {
		case replay.CallAlloc:
			level -= min(level, tight.Round(c.Size))
		case replay.CallFree, replay.CallFreeLater:
			if k := h.at[c.Tensor]; k >= 0 {
				level += tight.Round(h.allocs[k].size)
			}
		}
	}
	return most
}

// Packed returns how far the run would get under a limit if blocks could be
// placed without waste.
func (p *Prognosis) Packed(limit uint64) Carries {
	if !p.Matched {
		if p.Need > limit {
			return p.dies(0)
		}
		return p.unknown()
	}
	for i, peak := range p.chain.peaks {
		if peak > limit {
			return p.dies(i)
		}
	}
	return p.lasts(slices.Max(p.chain.peaks), limit)
}

// Under returns how far the run would get under some conditions.
func (p *Prognosis) Under(ctx context.Context, c replay.Conditions) (Carries, error) {
	if have := room(&c); have > 0 && p.Need > have {
		return p.dies(0), nil
	}
	if !p.Matched {
		return p.unknown(), nil
	}
	o, err := p.chain.to.Program().Run(ctx, c)
	if err != nil {
		return Carries{}, err
	}
	if !o.Fails {
		return p.lasts(o.Reserved.Bytes, room(&c)), nil
	}
	done := 0
	for done < len(p.chain.ends) && o.First.Event > p.chain.ends[done] {
		done++
	}
	if done == 0 || p.Grows() > 0 {
		return p.dies(done), nil
	}
	return Carries{Kind: Step, RestsOn: p.restsOn()}, nil
}

// Curve returns the totals along the changed run under some conditions, in so many
// pieces. The events of the continued steps follow those of the recording.
func (p *Prognosis) Curve(ctx context.Context, c replay.Conditions, pieces int) ([]replay.Point, error) {
	if p.chain == nil {
		return nil, nil
	}
	c.Points = pieces
	o, err := p.chain.to.Program().Run(ctx, c)
	if err != nil {
		return nil, err
	}
	return o.Curve, nil
}

// room returns the memory there is under some conditions; 0 if there is no end.
func room(c *replay.Conditions) uint64 {
	if limit := c.Cap(); limit > 0 && (c.DeviceMemory == 0 || limit < c.DeviceMemory) {
		return limit
	}
	return c.DeviceMemory
}

// far is how many times the recorded steps are more than a recording can tell
// about: kept numbers of a few bytes end no job.
const far = 100

// Least returns what the smallest of the further steps needs; 0 if there is none.
func (p *Prognosis) Least() uint64 {
	if p.chain == nil || len(p.chain.peaks) < 2 {
		return 0
	}
	return slices.Min(p.chain.peaks[1:])
}

// Grown returns how much larger the request is than its counterpart; 0 if it has
// none.
func (p *Prognosis) Grown() float64 {
	if !p.Matched {
		return 0
	}
	i, _ := p.history.find(p.Template, p.history.wanted)
	return float64(p.history.request.Size) / float64(max(p.history.allocs[i].size, 1))
}

// Rose returns how many of the blocks that the failing step allocated from an
// event on are still there, and how many that were.
func (p *Prognosis) Rose(from int) (live, all int) {
	for i := p.Failing(); i < p.Allocations(); i++ {
		if p.Event(i) < from {
			continue
		}
		all++
		if p.Live(i) {
			live++
		}
	}
	return live, all
}

// lasts extrapolates a run that gets through the whole chain.
func (p *Prognosis) lasts(peak, limit uint64) Carries {
	grows := p.Grows()
	if grows == 0 {
		return Carries{Kind: Steady, RestsOn: p.restsOn()}
	}
	n := int((max(limit, peak) - peak) / grows)
	if p.Growth <= p.KeptPerStep { // the chain shows it
		n += len(p.chain.ends)
	}
	if n > far*len(p.history.begin) {
		return Carries{Kind: Steady, RestsOn: p.restsOn()}
	}
	n = max(n, 1)
	return Carries{Kind: Steps, Steps: &n, RestsOn: p.restsOn()}
}

// Grows returns what each step adds.
func (p *Prognosis) Grows() uint64 { return max(p.KeptPerStep, p.Growth) }

func (p *Prognosis) dies(after int) Carries {
	return Carries{Kind: Steps, Steps: &after, RestsOn: p.restsOn()}
}

func (p *Prognosis) unknown() Carries {
	return Carries{Kind: Unknown, RestsOn: "no earlier step shows how this one goes on"}
}

func (p *Prognosis) restsOn() string {
	if !p.Matched {
		return "what is allocated when the request is made"
	}
	return fmt.Sprintf("the step goes on as step %d did, sizes x%.2f", p.history.numbers[p.Template], p.Scale)
}
