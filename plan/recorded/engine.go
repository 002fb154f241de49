package recorded

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// Peaks are the highest totals of step 3, or of a generation.
type Peaks struct {
	Requested, Allocated, Reserved int64
}

// Peaks are those that were measured.
func (c *Case) Peaks() Peaks {
	return Peaks{Requested: c.PeakRequested, Allocated: c.PeakAllocated, Reserved: c.PeakReserved}
}

// Through runs a ledger through the engine on a device without a limit and
// returns the statistics that PyTorch would show, the peaks being reset where
// the measured part begins.
func Through(l *ledger.Ledger) (Peaks, error) {
	a := alloc.New(sim.New(sim.Config{Endless: true}))
	from := l.Scored()
	addrs := make([]uint64, len(l.Tensors))
	for i, e := range l.Events {
		if i == from {
			a.ResetPeakStats()
		}
		var err error
		if e >= 0 {
			t := l.Tensors[e]
			addrs[e], err = a.Malloc(uint64(t.Bytes), uint64(t.Stream))
		} else {
			err = a.Free(addrs[^e])
		}
		if err != nil {
			return Peaks{}, fmt.Errorf("event %d: %w", i, err)
		}
	}
	s := a.Stats()
	return Peaks{Requested: s.RequestedBytes.All.Peak, Allocated: s.AllocatedBytes.All.Peak, Reserved: s.ReservedBytes.All.Peak}, nil
}
