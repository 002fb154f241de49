package plan

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// Outcome is what the engine says about a run that has not been made.
type Outcome struct {
	// Fits is whether no request fails; nil without a card and a limit.
	Fits *bool `json:"fits"`

	// The peaks are those of a run without a limit. Under a limit the allocator
	// releases cached memory before a request fails: see Limited.
	PeakAllocated uint64 `json:"peak_allocated_bytes"`
	PeakReserved  uint64 `json:"peak_reserved_bytes"`
	PeakDevice    uint64 `json:"peak_device_bytes"`
	PeakRequested uint64 `json:"peak_requested_bytes"`
	// SmallestLimit is the lowest cap on reserved memory under which the run
	// passes.
	SmallestLimit uint64 `json:"smallest_limit_bytes"`
	// Available is the most that the allocator may reserve; nil if nothing bounds
	// it. Headroom is Available less SmallestLimit.
	Available *uint64 `json:"available_bytes"`
	Headroom  *int64  `json:"headroom_bytes"`

	// Limited is the run within Capacity; nil without one or if it does not fit.
	Limited *Limited `json:"limited"`
	// Tight: it fits, but Headroom is less than Range has above PeakReserved.
	Tight bool `json:"tight"`

	Range Range `json:"range"`

	BindingPhase string      `json:"binding_phase"`
	BindingStep  int         `json:"binding_step"`
	Components   []Component `json:"components"`
	// Fragmentation is 1 - peak allocated / peak reserved.
	Fragmentation float64 `json:"fragmentation"`

	Context          uint64 `json:"context_bytes"`
	ContextEstimated bool   `json:"context_estimated"`
	// TotalEstimated: the card's total was neither measured nor found in public
	// output.
	TotalEstimated bool   `json:"total_estimated"`
	Collectives    uint64 `json:"collectives_bytes"`

	Failure  *Failure  `json:"first_failure"` // nil if it fits
	Timeline *Timeline `json:"timeline"`
	Levers   []Lever   `json:"levers"`
	Settings string    `json:"settings"`
}

// Failure is the request at which a run that does not fit ends.
type Failure struct {
	Phase     string `json:"phase"`
	Step      int    `json:"step"`
	Op        string `json:"op"`
	Module    string `json:"module"`
	Bytes     uint64 `json:"bytes"`
	Reserved  uint64 `json:"reserved_bytes"`
	Allocated uint64 `json:"allocated_bytes"`
}

// Why says in which phase the run ends.
func (f *Failure) Why() string {
	if f.Step == 0 {
		return "it runs out of memory in " + f.Phase
	}
	return fmt.Sprintf("it runs out of memory in %s %d", f.Phase, f.Step)
}

// Outcome makes the part of an answer that needs no further run.
func (p *Played) Outcome() *Outcome {
	capacity := &p.Capacity
	phase := p.Ledger.PhaseAt(p.at)
	a := &Outcome{
		PeakAllocated: p.allocated, PeakReserved: p.reserved, PeakRequested: p.requested,
		PeakDevice:   p.reserved + p.outside(),
		BindingPhase: phase.Name, BindingStep: phase.Step,
		Components: components(p.Ledger, p.at, p.sizes),
		Settings:   p.Conf, Levers: []Lever{},
	}
	a.Collectives, _ = capacity.collectives(p.Group)
	a.Context, a.ContextEstimated = capacity.context()
	a.TotalEstimated = capacity.Card != nil && capacity.Card.Total == cards.Estimate
	if f := timeline.PeakFragmentation(p.reserved, p.allocated); f != nil {
		a.Fragmentation = *f
	}
	if len(p.curve) > 0 {
		a.Timeline = newTimeline(p.Ledger, p.curve, p.sizes)
	}
	return a
}

// Judge sets Tight, when limit and range are known.
func (a *Outcome) Judge() {
	if a.Headroom != nil && *a.Fits {
		a.Tight = *a.Headroom < int64(a.Range.ReservedHigh-a.PeakReserved)
	}
}

// FindLimit finds the smallest limit and whether the run fits.
func (p *Played) FindLimit(ctx context.Context, a *Outcome) (err error) {
	high := uint64(0)
	if plain(p.Settings) {
		high = p.reserved
	}
	if a.SmallestLimit, err = p.program.SmallestLimit(ctx, p.Settings, p.requested, high); err != nil {
		return err
	}
	n := p.available()
	if n == 0 {
		return nil
	}
	headroom := int64(n) - int64(a.SmallestLimit)
	a.Available, a.Headroom = &n, &headroom
	limited, failed, err := p.fits(ctx)
	if err != nil {
		return err
	}
	ok := limited != nil
	a.Fits, a.Limited = &ok, limited
	if failed != nil {
		a.Failure = describe(p.Ledger, failed)
	}
	return nil
}

// describe names the tensor of a request that failed.
func describe(l *ledger.Ledger, f *replay.Failure) *Failure {
	out := &Failure{Bytes: f.Requested, Reserved: f.Reserved, Allocated: f.Allocated}
	if f.Event < 0 || f.Event >= len(l.Events) {
		return out
	}
	phase := l.PhaseAt(f.Event)
	out.Phase, out.Step = phase.Name, phase.Step
	if e := l.Events[f.Event]; e >= 0 {
		out.Op, out.Module = l.Text(l.Tensors[e].Op), l.Text(l.Tensors[e].Module)
	}
	return out
}
