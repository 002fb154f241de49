package plancompare

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Peaks are the highest totals of step 3, or of a generation.
type Peaks struct {
	Requested, Allocated, Reserved int64
}

// Peaks returns those that were measured.
func (c *Case) Peaks() Peaks {
	return Peaks{Requested: c.PeakRequested, Allocated: c.PeakAllocated, Reserved: c.PeakReserved}
}

// Check reports the first event of a ledger that cannot be: a tensor that is
// freed twice, or before its birth. It names the tensor.
func Check(l *ledger.Ledger) error {
	state := make([]int, len(l.Tensors)) // 0 not born, else 1 + the event of birth, or -(1 + that of death)
	for i, e := range l.Events {
		t := max(e, ^e)
		was := state[t]
		switch {
		case e >= 0 && was == 0:
			state[t] = i + 1
			continue
		case e < 0 && was > 0:
			state[t] = -(i + 1)
			continue
		}
		p := l.PhaseAt(i)
		what := "is born twice"
		if e < 0 {
			what = "dies before its birth"
			if was < 0 {
				what = fmt.Sprintf("is freed twice, first at event %d", -was-1)
			}
		}
		return fmt.Errorf("event %d (%s, step %d): tensor #%d %s; %d bytes of %s in %s",
			i, p.Name, p.Step, t, what, l.Tensors[t].Bytes, l.Text(l.Tensors[t].Op), l.Text(l.Tensors[t].Module))
	}
	return nil
}

// Through runs a planned ledger through the engine on a device without a limit
// and returns the statistics that PyTorch would show, the peaks being reset where
// the measured part begins.
func Through(l *ledger.Ledger) (Peaks, error) { return through(l, l.External()) }

// through runs a ledger beside which others take addresses.
func through(l *ledger.Ledger, others ledger.Externals) (Peaks, error) {
	if err := Check(l); err != nil {
		return Peaks{}, err
	}
	dev := sim.New(sim.Config{Endless: true, Started: true})
	a := alloc.New(dev)
	from := l.Scored()
	addrs := make([]uint64, len(l.Tensors))
	for i, e := range l.Events {
		if i == from {
			a.ResetPeakStats()
		}
		var err error
		if e >= 0 {
			if err := others.Before(e, dev); err != nil {
				return Peaks{}, err
			}
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
