package replay

import (
	"context"
	"fmt"
)

// RunChecked is Run, and looks at the allocator and the device at the end.
func (p *Program) RunChecked(ctx context.Context, c Conditions) (*Outcome, error) {
	r, err := p.simulate(c, nil)
	if err != nil {
		return nil, err
	}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	if err := r.allocator.CheckInvariants(); err != nil {
		return nil, err
	}
	o := r.finish()
	if held := r.device.Held(); held != uint64(o.Stats.ReservedBytes.All.Current) {
		return nil, fmt.Errorf("%d reserved, the device has given %d", o.Stats.ReservedBytes.All.Current, held)
	}
	return o, nil
}

// Waits reports whether frees of the program are completed later.
func (p *Program) Waits() bool { return p.waits > 0 }
