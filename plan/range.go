package plan

import (
	"context"

	"github.com/ashlar-mem/ashlar/plan/ledger"
	"github.com/ashlar-mem/ashlar/replay"
)

// Range is how far a measured peak may lie from the planned one.
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

// answerRange finds how far the peaks may be off.
func (p *planned) answerRange(ctx context.Context, a *Answer) error {
	r := &a.Range
	history, err := p.history(ctx)
	if err != nil {
		return err
	}
	r.Reasons = append(r.Reasons, history)
	for _, t := range p.run.uncertain {
		r.Reasons = append(r.Reasons, Reason{t.Name, t.Low, t.High, t.Low, t.High})
	}
	if miss := p.miss(); miss != (Reason{}) {
		r.Reasons = append(r.Reasons, miss)
	}
	var low, high, reservedLow, reservedHigh uint64
	for _, x := range r.Reasons {
		low, high = low+x.Low, high+x.High
		reservedLow, reservedHigh = reservedLow+x.ReservedLow, reservedHigh+x.ReservedHigh
	}
	r.Low, r.High = p.allocated-min(low, p.allocated), p.allocated+high
	// What is allocated is reserved.
	r.ReservedLow, r.ReservedHigh = max(p.reserved-min(reservedLow, p.reserved), r.Low), p.reserved+max(reservedHigh, high)
	outside := a.PeakDevice - p.reserved
	r.DeviceLow, r.DeviceHigh = r.ReservedLow+outside, r.ReservedHigh+outside
	return nil
}
