package script

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
)

// plainStats are the statistics that follow from the events alone, counted
// step by step: what the allocator's own, which take short cuts, must equal.
type plainStats struct {
	allocation, active, requested, reserved alloc.Stat
	allocatedBytes, activeBytes             alloc.Stat
}

func (p *plainStats) count(e alloc.Event) {
	move := func(s *alloc.Stat, x int64) {
		s.Current += x
		s.Peak = max(s.Peak, s.Current)
		if x > 0 {
			s.Allocated += x
		} else {
			s.Freed -= x
		}
	}
	size, block := int64(e.Size), int64(e.Block)
	switch e.Action {
	case alloc.ActionAlloc:
		move(&p.allocation, 1)
		move(&p.allocatedBytes, block)
		move(&p.active, 1)
		move(&p.activeBytes, block)
		move(&p.requested, size)
	case alloc.ActionFreeRequested:
		move(&p.allocation, -1)
		move(&p.allocatedBytes, -block)
	case alloc.ActionFreeCompleted:
		move(&p.active, -1)
		move(&p.activeBytes, -block)
		move(&p.requested, -size)
	case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
		move(&p.reserved, size)
	case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
		move(&p.reserved, -size)
	}
}

// Check verifies the allocator's invariants and its statistics against those
// counted from the events.
func (r *Runner) Check() error {
	if err := r.Allocator.CheckInvariants(); err != nil {
		return err
	}
	s := r.Allocator.Stats()
	for _, c := range []struct {
		name      string
		got, want alloc.Stat
	}{
		{"allocation", s.Allocation.All, r.plain.allocation},
		{"active", s.Active.All, r.plain.active},
		{"allocated_bytes", s.AllocatedBytes.All, r.plain.allocatedBytes},
		{"active_bytes", s.ActiveBytes.All, r.plain.activeBytes},
		{"requested_bytes", s.RequestedBytes.All, r.plain.requested},
		{"reserved_bytes", s.ReservedBytes.All, r.plain.reserved},
	} {
		if c.got != c.want {
			return fmt.Errorf("%s is %+v, counted from the events %+v", c.name, c.got, c.want)
		}
	}
	return nil
}
