package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tier"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// fixed returns the setting that keeps all memory where it is; empty if it can be moved.
func (c *config) fixed() string {
	switch {
	case !c.own.tiers:
		return "tiers:False"
	case !c.engine.ExpandableSegments:
		return "expandable_segments:False"
	case c.hold:
		return holdVariable + "=1"
	}
	return ""
}

// overflow returns how much may overflow.
func (c *config) overflow() uint64 {
	if c.fixed() != "" {
		return 0
	}
	return c.own.overflow
}

// withoutEffect says why overflow has no effect; empty if it has, or is not wanted.
func (c *config) withoutEffect() string {
	if by := c.fixed(); by != "" && c.own.overflow > 0 {
		return "overflow has no effect beside " + by + ": leave one of them out"
	}
	return ""
}

// setHostLimit puts the limit of the host's memory into force.
func (m *mover) setHostLimit(own *ownSettings) error {
	room, err := tier.HostRoom()
	if err != nil {
		return err
	}
	bytes, by := own.mostHost(room + m.store.HostBytes()) // what is taken is no room any more
	m.limitedBy.Store(&by)
	m.store.SetHostLimit(bytes)
	return nil
}

// mostHost returns how much of a host with that much room may be taken: what host_limit says, or half of it, or what
// overflow needs if that is more; and never more than it has. And which of these it is.
func (o *ownSettings) mostHost(room uint64) (bytes uint64, by string) {
	bytes, by = room/2, "are half of what the host had (host_limit sets another limit)"
	if o.overflow > bytes {
		bytes, by = o.overflow, "overflow allows"
	}
	if o.hostLimit > 0 {
		bytes, by = o.hostLimit, "host_limit allows"
	}
	if bytes > room {
		bytes, by = room, "the host had"
	}
	return bytes, by
}

// hostSpeed is what a device reads of the host's memory in a second, on an H200 with
// PCIe 5.
const hostSpeed = 51e9

// overflowed has the first request of a space that the host's memory served tell of it. One for a device is told.
func (m *mover) overflowed(s *tier.Space, o tier.Overflow) {
	bytes, what := o.Size, "is in the host's memory"
	if o.Moved > 0 {
		bytes, what = o.Moved, "of cold memory was moved to the host's"
	}
	text := fmt.Sprintf("ashlar: device %d is full: %s %s; each pass over it takes %v more over a bus of %.0f GB/s. "+
		"memory_stats()[\"ashlar.host_bytes\"] has the sum from now on.",
		m.number, units.Size(bytes), what, time.Duration(float64(bytes)/hostSpeed*1e9).Round(time.Microsecond), hostSpeed/1e9)
	slots, err := m.lib.ofDevice(m.number)
	if err != nil {
		return
	}
	for _, d := range slots {
		if d.space == s {
			d.note.Store(&text)
		}
	}
}

// notServed says why the host's memory did not serve a request that failed; empty if overflow is off.
func (d *device) notServed(e *alloc.OutOfMemoryError) string {
	d.lib.mu.Lock()
	most, why := d.lib.cfg.own.overflow, d.lib.cfg.withoutEffect()
	d.lib.mu.Unlock()
	switch {
	case most == 0 || e.TooLarge:
		return ""
	case why != "":
		return " O" + why[1:] + "."
	case d.mover == nil:
		return " Overflow has no effect on this device: its driver does not map the host's memory, tiers were off when it was first used, or the system does not tell how much memory is available."
	case e.Pool != alloc.PoolID{}:
		return " Overflow does not serve the pools of CUDA graphs."
	}
	rules, store := d.alloc.Rules(), d.mover.store
	need := rules.MappedSize(e.Rounded, rules.Large(e.Rounded))
	if most := alloc.ReservationSize(store.Driver().TotalMemory(), rules.Granule(rules.Large(e.Rounded))); e.Rounded > most {
		return fmt.Sprintf(" Overflow serves no request above %s, 9/8 of the device in whole pages: a segment has no more addresses.", units.Size(most))
	}
	short := func(limit, used uint64, by string) string {
		if need <= limit-min(limit, used) {
			return ""
		}
		return fmt.Sprintf(" Overflow does not suffice: of the %s that %s, %s are in use, and the request takes %s.",
			units.Size(limit), by, units.Size(used), units.Size(need))
	}
	taken := store.HostInUse()
	capturing := ""
	if d.lib.recording.Load() > 0 {
		capturing = " Overflow serves nothing while a CUDA graph is captured."
	}
	return cmp.Or(
		short(most, store.Stats().Spilt, "overflow allows"),
		short(store.HostLimit(), taken, *d.mover.limitedBy.Load()),
		capturing,
		fmt.Sprintf(" Overflow did not help: the host has not given the %s that the request takes, beside %s in use.", units.Size(need), units.Size(taken)))
}
