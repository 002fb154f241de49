package tenants

import (
	"errors"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

// The arrangements.
const (
	Tenants = "tenants" // guarantees and a shared rest
	Shared  = "shared"  // one engine for all
	Hard    = "hard"    // each alone under a share
	MIG     = "mig"     // each alone in an instance
)

// newStage makes the members of an arrangement, whose device has so much memory.
func (q *Question) newStage(memory uint64, host func(i int, m *member) replay.Host) *stage {
	s := &stage{skip: q.SkipOOM, retries: map[*alloc.Allocator]int64{}, covered: fitsGuarantee}
	for i, r := range q.Runs {
		m := &member{Run: r, conditions: replay.Conditions{Settings: r.settings(), DeviceMemory: memory}}
		m.host = host(i, m)
		s.members = append(s.members, m)
	}
	return s
}

// fitsGuarantee counts what a run has allocated where nothing is reserved for it
// alone.
func fitsGuarantee(m *member, _ error, size uint64) bool {
	rules := alloc.RulesOf(m.conditions.Settings, m.Program.Version)
	return m.step.Live()+rules.Round(size) <= m.Guarantee
}

// asTenants plays the runs as tenants. Each has a device, and so addresses, of its
// own, as it would have alone; the group counts their bytes.
func (q *Question) asTenants(limit uint64) (*stage, *tenant.Group, error) {
	limit = max(limit, 1) // which holds as little as 0
	g, err := tenant.New(sim.New(sim.Config{TotalMemory: limit}), limit, tenant.Options{})
	if err != nil {
		return nil, nil, err
	}
	alone := len(q.Runs) == 1 && q.Runs[0].passes() == 1
	s := q.newStage(limit, func(i int, m *member) replay.Host {
		return func(d *sim.Device, opts ...alloc.Option) (*replay.Hosted, error) {
			m.device = d
			t, err := g.Add(m.Name, tenant.Terms{Guarantee: m.Guarantee, Ceiling: m.Ceiling, Priority: m.Priority, Driver: d}, opts...)
			if err != nil {
				return nil, err
			}
			m.allocator = t.Allocator()
			return &replay.Hosted{Allocator: m.allocator, Malloc: t.Malloc, Requested: !alone}, nil
		}
	})
	s.covered = func(_ *member, failure error, _ uint64) bool {
		var oom *tenant.OutOfMemoryError
		return errors.As(failure, &oom) && oom.Guaranteed()
	}
	return s, g, nil
}

// asShared plays the runs through one engine. Streams have their recorded numbers, so
// that the runs reuse each other's blocks as much as they can.
func (q *Question) asShared(limit uint64) *stage {
	device := sim.New(sim.Config{TotalMemory: limit, Events: sim.Manual})
	engine := alloc.New(device, alloc.WithSettings(q.Runs[0].settings()), alloc.WithVersion(q.Runs[0].Program.Version))
	return q.newStage(limit, func(i int, m *member) replay.Host {
		m.device, m.allocator = device, engine
		return func(*sim.Device, ...alloc.Option) (*replay.Hosted, error) {
			return &replay.Hosted{Allocator: engine, Malloc: engine.Malloc, Device: device, Member: uint64(i + 1), Requested: true}, nil
		}
	})
}

// alone plays each run by itself, under a limit or on a device of some size.
func (q *Question) alone(bound func(i int) (limit, memory uint64)) *stage {
	return q.newStage(0, func(i int, m *member) replay.Host {
		m.conditions.Limit, m.conditions.DeviceMemory = bound(i)
		return func(d *sim.Device, opts ...alloc.Option) (*replay.Hosted, error) {
			m.device, m.allocator = d, alloc.New(d, opts...)
			return &replay.Hosted{Allocator: m.allocator, Malloc: m.allocator.Malloc}, nil
		}
	})
}
