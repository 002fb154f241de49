package plan

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// Limited is a run that fits within the given capacity: where memory would not
// suffice, the allocator releases what is cached and goes on.
type Limited struct {
	PeakReserved uint64 `json:"peak_reserved_bytes"`
	PeakDevice   uint64 `json:"peak_device_bytes"`
	// Retries is how often the cache was given back, in the whole run.
	Retries int64 `json:"retries"`
}

// fits runs the program within its capacity. One of the results is nil: the
// failure, or the run that fits.
func (p *Played) fits(ctx context.Context) (*Limited, *replay.Failure, error) {
	outside := p.outside()
	if p.reserved <= p.available() && plain(p.Settings) {
		return &Limited{PeakReserved: p.reserved, PeakDevice: p.reserved + outside}, nil, nil // nothing is ever in the way
	}
	c := p.conditions()
	c.From = p.Ledger.Scored()
	o, err := p.program.Run(ctx, c)
	switch {
	case err != nil:
		return nil, nil, err
	case o.Fails:
		return nil, o.First, nil
	}
	return &Limited{PeakReserved: o.Reserved.Bytes, PeakDevice: o.Reserved.Bytes + outside, Retries: o.Retries}, nil, nil
}

// Within runs the ledger within its capacity, which there must be. One of the
// results is nil: the failure, or the run that fits.
func (p *Played) Within(ctx context.Context) (*Limited, *Failure, error) {
	l, f, err := p.fits(ctx)
	if f == nil {
		return l, nil, err
	}
	return l, describe(p.Ledger, f), err
}

// within is fits without the reason. What is requested must be reserved, so a job
// that requests more than is available cannot fit.
func (p *Played) within(ctx context.Context) (*Limited, error) {
	if p.requested > p.available() {
		return nil, nil
	}
	l, _, err := p.fits(ctx)
	return l, err
}

// passes reports whether the run fits.
func (p *Played) passes(ctx context.Context) (bool, error) {
	l, err := p.within(ctx)
	return l != nil, err
}

// plain reports whether a limit that is never reached has no effect.
func plain(s settings.Settings) bool {
	return s.GarbageCollectionThreshold == 0 && !s.ExpandableSegments
}
