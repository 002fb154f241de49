package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// Rough is the plan of a model that no family describes. What does not depend on
// the batch is planned in full: weights, gradients, master weights and the
// optimizer's state. Activations are those of the nearest family in a wide range,
// or left open.
type Rough struct {
	Rough bool `json:"rough"` // true
	// Fits is nil if nothing was named to fit into, and if the range is too wide
	// to tell: Open says which.
	Fits *bool `json:"fits"`
	Open bool  `json:"open"`

	// Low and High bound what the allocator needs; High is nil if activations are
	// not planned.
	Low       uint64  `json:"low_bytes"`
	High      *uint64 `json:"high_bytes"`
	Available *uint64 `json:"available_bytes"`

	// State is the peak without activations, and Components what it is made of.
	// StateLow is less only if the sizes are guessed from a config.
	State       uint64            `json:"state_bytes"`
	StateLow    uint64            `json:"state_low_bytes"`
	Components  []Component       `json:"components"`
	Activations *RoughActivations `json:"activations"` // nil if they are not planned
	Parts       []RoughPart       `json:"parts"`

	Context          uint64   `json:"context_bytes"`
	ContextEstimated bool     `json:"context_estimated"`
	TotalEstimated   bool     `json:"total_estimated"`
	Collectives      uint64   `json:"collectives_bytes"`
	Beside           []Beside `json:"beside"`

	Model         string `json:"model"`
	Parameters    int64  `json:"parameters"`
	ParametersLow int64  `json:"parameters_low"`
	// Exact is the command that measures what is rough here.
	Exact       string   `json:"exact"`
	Assumed     []string `json:"assumed"`
	NotModelled []string `json:"not_modelled"`
}

// RoughActivations are those of the nearest family: what a run has beside its
// state.
type RoughActivations struct {
	Like string `json:"like"` // the family
	Low  uint64 `json:"low_bytes"`
	High uint64 `json:"high_bytes"`
}

// RoughPart is a model of a pipeline, or the only one.
type RoughPart struct {
	Name       string `json:"name"`
	Class      string `json:"class"`
	Parameters int64  `json:"parameters"`
	Bytes      uint64 `json:"weights_bytes"`
	Trained    bool   `json:"trained"`
	Source     string `json:"source"` // what the sizes are from: headers, index or config
}

// Exactly is the command that plans any program by running it without a GPU.
const Exactly = "ashlar dry -- python train.py"

// The range of activations, as parts of those of the nearest family.
// TestRoughBounds has what known families would have had.
const (
	activationsLow  = 0.5
	activationsHigh = 2
)

// AskRough plans the question's checkpoint, which no family describes.
func AskRough(ctx context.Context, q Question) (*Rough, error) {
	r, err := newRough(ctx, q)
	if err != nil {
		return nil, err
	}
	high, err := r.states(ctx, r.weights)
	if err != nil {
		return nil, err
	}
	low := high
	if r.least != nil {
		if low, err = r.states(ctx, r.least); err != nil {
			return nil, err
		}
	}
	a := r.answer(high)
	a.StateLow = low.allocated
	if r.least != nil {
		a.ParametersLow = low.run.parameters
	}
	from, to := low.resident, high.reserved
	near := r.activations(ctx, a)
	if near != nil {
		from += part(near.bytes, activationsLow)
		to += part(uint64(float64(near.bytes)*near.overhead), activationsHigh)
		a.Assumed = append(a.Assumed, r.ofPasses...)
		a.Activations = &RoughActivations{Like: r.near.String(), Low: part(near.bytes, activationsLow), High: part(near.bytes, activationsHigh)}
	}
	a.Low = max(low.allocated, from)
	if near != nil && !near.partial {
		a.High = &to
	}
	a.fit(r.question.Capacity.available(groupOf(r.job)))
	return a, nil
}

// fit compares the range with what there is.
func (a *Rough) fit(available uint64) {
	a.Fits, a.Open, a.Available = nil, false, nil
	if available == 0 {
		return
	}
	a.Available = &available
	yes, no := true, false
	switch {
	case a.Low > available:
		a.Fits = &no
	case a.High != nil && *a.High <= available:
		a.Fits = &yes
	default:
		a.Open = true
	}
}

// RoughOnCard is a rough plan on one card of a comparison.
type RoughOnCard struct {
	Name           string `json:"name"`
	Title          string `json:"title"`
	Total          uint64 `json:"total_bytes"`
	TotalEstimated bool   `json:"total_estimated"`
	Available      uint64 `json:"available_bytes"`
	Fits           *bool  `json:"fits"` // nil if the range is too wide to tell
	Taken          string `json:"taken,omitempty"`
}

// CompareRough looks at a rough plan on several cards.
func CompareRough(ctx context.Context, q Question, on []cards.Card) (*Rough, []RoughOnCard, error) {
	var out []RoughOnCard
	var a *Rough
	for i := range on {
		c := &on[i]
		q.Capacity.Card = c
		var err error
		if a, err = AskRough(ctx, q); err != nil {
			return nil, nil, err
		}
		out = append(out, RoughOnCard{c.Name, c.Title, c.TotalBytes, a.TotalEstimated, *a.Available, a.Fits, c.Taken})
	}
	return a, out, nil
}

// roughState is what a run has that does not depend on the batch.
type roughState struct {
	*planned
	// resident is there at the beginning of a step, before there are gradients,
	// or once the model is loaded.
	resident uint64
}

// states runs the job without its passes.
func (r *rough) states(ctx context.Context, weights []hf.Weight) (*roughState, error) {
	result, err := hf.States(ctx, r.job, weights)
	if err != nil {
		return nil, err
	}
	p, err := r.question.planRun(ctx, r.job, &executed{ledger: result.Ledger, parameters: result.Count(), beside: result.Beside}, 0)
	if err != nil {
		return nil, err
	}
	last := len(result.Ledger.Events) - 1
	if r.job.Mode == model.Train {
		last = result.Ledger.Scored() - 1
	}
	return &roughState{p, liveAt(p, max(last, 0))}, nil
}

// answer is the part of an answer that does not depend on activations.
func (r *rough) answer(s *roughState) *Rough {
	capacity := &r.question.Capacity
	a := &Rough{
		Rough: true, State: s.allocated, Components: components(s.run.ledger, s.at, s.sizes), Parts: r.parts, Beside: beside(s.run.beside),
		Model: r.checkpoint.Class, Exact: Exactly, Assumed: append(capacity.Assumed(), r.assumed...), NotModelled: r.notModelled,
	}
	for _, p := range r.parts {
		a.Parameters += p.Parameters
	}
	a.ParametersLow = a.Parameters
	a.Collectives, _ = capacity.collectives(groupOf(r.job))
	a.Context, a.ContextEstimated = capacity.context()
	a.TotalEstimated = capacity.Card != nil && capacity.Card.Total == cards.Estimate
	return a
}

// nearby is what the nearest family has beside its state.
type nearby struct {
	bytes    uint64
	overhead float64 // reserved for each byte allocated
	partial  bool    // a part of the model is not in it
}

// activations plans the nearest family, and says in the answer why it is not
// planned if it is not.
func (r *rough) activations(ctx context.Context, a *Rough) *nearby {
	open := func(why string, args ...any) *nearby {
		a.NotModelled = append(a.NotModelled, "activations: "+fmt.Sprintf(why, args...))
		return nil
	}
	o := r.question.Options
	switch {
	case r.near == nil:
		return open("no family here is like %s", r.checkpoint.Class)
	case !o.Has("batch"):
		return open("give --batch, and --seq where there are tokens, to have them bounded")
	case !o.Has("seq") && r.near.Model.ViT == nil:
		return open("give --seq to have them bounded")
	}
	for _, name := range []string{"lora-targets", "dtype"} { // names and types of the model itself
		o = o.with(name, "")
	}
	if r.near.Model.ViT != nil {
		o = o.with("seq", "").with("target-seq", "")
	}
	q := r.question
	q.Model, q.Weights, q.Options = r.near.Model, nil, o.with("dtype", string(r.job.DType))
	if q.Options.Get("quant") == "" && q.Model.Quant != nil {
		q.Options = q.Options.with("quant", noQuant)
	}
	p, _, err := q.plan(ctx, q.Options, 0)
	if err != nil {
		return open("the nearest family, %s, cannot be planned so: %v", r.near, err)
	}
	if r.near.Part != "" {
		a.NotModelled = append(a.NotModelled, fmt.Sprintf("activations outside of %s: they come on top", r.near.Part))
	}
	return &nearby{bytes: p.besideState(), overhead: max(float64(p.reserved)/float64(max(p.allocated, 1)), 1), partial: r.near.Part != ""}
}

// besideState is the most that is there at a time of what depends on the batch.
func (p *planned) besideState() uint64 {
	l := p.run.ledger
	state := []ledger.Kind{ledger.Weight, ledger.Master, ledger.Gradient, ledger.Optimizer}
	if s := p.job.Shard; s.FSDP == 0 && s.ZeroStage != 3 { // otherwise they are gathered for a layer
		state = append(state, ledger.Collective)
	}
	var live, most uint64
	from := l.Scored()
	for i, e := range l.Events {
		if e == ledger.EmptyCache {
			continue
		}
		t := e
		if e < 0 {
			t = ^e
		}
		if slices.Contains(state, l.Tensors[t].Kind) {
			continue
		}
		if e >= 0 {
			live += p.sizes[t]
		} else {
			live -= p.sizes[t]
		}
		if i >= from {
			most = max(most, live)
		}
	}
	return most
}
