package plan

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// Limited is a run that fits, as it goes in the room that it has: where memory
// would be too little, what is cached is given back, and then it goes on.
type Limited struct {
	PeakReserved uint64 `json:"peak_reserved_bytes"`
	PeakDevice   uint64 `json:"peak_device_bytes"`
	// Retries is how often the cache was given back, in the whole run.
	Retries int64 `json:"retries"`
}

// fits runs the program in the room. Either the failure is nil, or what fits.
func (p *planned) fits(ctx context.Context) (*Limited, *replay.Failure, error) {
	room, s := &p.q.Room, p.q.Settings
	outside := room.outside(p.job)
	if n := room.available(p.job); p.reserved <= n && plain(s) {
		return &Limited{PeakReserved: p.reserved, PeakDevice: p.reserved + outside}, nil, nil // nothing is ever in the way
	}
	c := room.conditions(s, p.job)
	c.From = p.run.ledger.Scored()
	o, err := p.program.Run(ctx, c)
	switch {
	case err != nil:
		return nil, nil, err
	case o.Fails:
		return nil, o.First, nil
	}
	return &Limited{PeakReserved: o.Reserved.Bytes, PeakDevice: o.Reserved.Bytes + outside, Retries: o.Retries}, nil, nil
}

// within is fits for those who do not ask why not. What is live is reserved, so
// more than there is room for cannot pass.
func (p *planned) within(ctx context.Context) (*Limited, error) {
	if p.requested > p.q.Room.available(p.job) {
		return nil, nil
	}
	l, _, err := p.fits(ctx)
	return l, err
}

// passes tells whether it fits.
func (p *planned) passes(ctx context.Context) (bool, error) {
	l, err := p.within(ctx)
	return l != nil, err
}

// plain tells whether a limit that is never reached changes nothing.
func plain(s settings.Settings) bool {
	return s.GarbageCollectionThreshold == 0 && !s.ExpandableSegments
}
