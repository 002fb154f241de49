package plan

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

// Range bounds the measured peak around the planned one.
type Range struct {
	Low  uint64 `json:"low_bytes"` // of allocated memory
	High uint64 `json:"high_bytes"`

	ReservedLow  uint64 `json:"reserved_low_bytes"`
	ReservedHigh uint64 `json:"reserved_high_bytes"`
	DeviceLow    uint64 `json:"device_low_bytes"`
	DeviceHigh   uint64 `json:"device_high_bytes"`

	Reasons []Reason `json:"reasons"`
}

// Reason is why a peak may differ, and by how much.
type Reason struct {
	Name string `json:"name"`
	// Low and High are how many bytes below and above the plan allocated memory
	// may be because of it; the others are of reserved memory.
	Low          uint64 `json:"low_bytes"`
	High         uint64 `json:"high_bytes"`
	ReservedLow  uint64 `json:"reserved_low_bytes"`
	ReservedHigh uint64 `json:"reserved_high_bytes"`
}

// answerRange estimates how far the peaks may be off.
func (p *planned) answerRange(ctx context.Context, a *Answer) error {
	why := []Reason{p.miss()}
	if x, ok := p.collectives(); ok {
		why = append(why, x)
	}
	return p.FindRange(ctx, &a.Outcome, why...)
}

// FindRange estimates how far the peaks may be off: by the allocator's history,
// by what the ledger is not certain of, and by further reasons.
func (p *Played) FindRange(ctx context.Context, a *Outcome, why ...Reason) error {
	r := &a.Range
	history, err := p.history(ctx)
	if err != nil {
		return err
	}
	r.Reasons = append(r.Reasons, history)
	for _, t := range p.Ledger.Uncertain {
		low, high := uint64(max(t.Low, 0)), uint64(max(t.High, 0))
		reason := Reason{Name: t.Name, ReservedLow: low, ReservedHigh: high}
		if !t.Reserved {
			reason.Low, reason.High = low, high
		}
		r.Reasons = append(r.Reasons, reason)
	}
	r.Reasons = append(r.Reasons, why...)
	var low, high, reservedLow, reservedHigh uint64
	for _, x := range r.Reasons {
		low, high = low+x.Low, high+x.High
		reservedLow, reservedHigh = reservedLow+x.ReservedLow, reservedHigh+x.ReservedHigh
	}
	r.Low, r.High = p.allocated-min(low, p.allocated), p.allocated+high
	// What is allocated is reserved.
	r.ReservedLow, r.ReservedHigh = max(p.reserved-min(reservedLow, p.reserved), r.Low), p.reserved+max(reservedHigh, high)
	outside := a.PeakDevice - p.reserved
	held, most := p.Capacity.collectives(p.Group)
	r.DeviceLow, r.DeviceHigh = r.ReservedLow+outside, r.ReservedHigh+outside+most-held
	return nil
}

// others are circumstances that no plan knows: a tensor that a program holds
// beside the planned ones, a buffer or a batch that was fetched ahead, and a
// driver that places segments the other way round. A small tensor shares a
// segment with others, a large one gets its own.
var others = []struct {
	stray    uint64
	mirrored bool
}{{2 << 20, false}, {16 << 20, true}}

// history is what the past of the allocator and the driver decide: which free
// block a request meets, and so what is left over beside it. It is found by
// replays of the run under other circumstances.
func (p *Played) history(ctx context.Context) (Reason, error) {
	out := Reason{Name: "allocator history: other tensors or segments leave other free blocks"}
	for _, x := range others {
		if x.stray > p.allocated/20 {
			break // nothing beside, but a part of the run
		}
		o, err := p.program.Beside(x.stray).Run(ctx, replay.Conditions{Settings: p.Settings, From: p.Ledger.Scored() + 1, BlockSizes: true, Mirrored: x.mirrored})
		if err != nil {
			return out, err
		}
		own := o.BlockSizes[len(o.BlockSizes)-1]
		spread(&out.Low, &out.High, p.allocated, o.Allocated.Bytes-own)
		spread(&out.ReservedLow, &out.ReservedHigh, p.reserved, o.Reserved.Bytes-own)
	}
	return out, nil
}

// spread widens a range so that it holds another value.
func spread(low, high *uint64, planned, other uint64) {
	if other < planned {
		*low = max(*low, planned-other)
	} else {
		*high = max(*high, other-planned)
	}
}

// miss is a margin for what no recording has shown.
func (p *planned) miss() Reason {
	of := presets[0]
	name := of.why
	if p.job.Shard.BuildSharded {
		name = "ranks that build only their part of the weights were not measured; " + name
	}
	source := true
	switch {
	case len(restsOn(p.job)) > 0:
		name = "quantised weights, bitsandbytes and offloading rest on sources and were not measured"
	case !p.job.Model.Measured():
		name = p.question.Model.Class + " rests on transformers' source and was not measured"
	case unmeasuredGeneration(p.job):
		name = "this way of generating rests on transformers' source and was not measured"
	default:
		source = false
	}
	if source {
		of.missLow, of.missHigh, of.missReservedLow, of.missReservedHigh = unseen, unseen, unseen, unseen
	}
	return Reason{
		Name: name,
		Low:  part(p.allocated, of.missLow), High: part(p.allocated, of.missHigh),
		ReservedLow: part(p.reserved, of.missReservedLow), ReservedHigh: part(p.reserved, of.missReservedHigh),
	}
}

// unseen is the margin of runs that rest on sources alone.
const unseen = 0.05

// collectives is what is not known about ways to spread a model over ranks that
// were not measured. It comes on top of the margin, so that none of them looks
// more certain than one that was. The collectives of FSDP were measured, however
// the model was built.
func (p *planned) collectives() (Reason, bool) {
	whole := *p.job
	whole.Shard.BuildSharded = false
	if whole.Shard == (model.Shard{}) || measuredRun(&whole) {
		return Reason{}, false
	}
	n := p.live(ledger.Collective)
	return Reason{"buffers of collectives: this sharding was not measured", n, n, n, n}, true
}

func part(bytes uint64, fraction float64) uint64 { return uint64(float64(bytes) * fraction) }

// live is how much of a kind is allocated at the peak.
func (p *planned) live(kind ledger.Kind) uint64 {
	var sum uint64
	for i := range p.run.ledger.Tensors {
		if t := &p.run.ledger.Tensors[i]; t.Kind == kind && t.Live(p.at) {
			sum += p.sizes[i]
		}
	}
	return sum
}
