package playground

import (
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/settings"
)

// device describes what the experiment begins with.
func (g *game) device(line string) Device {
	return Device{
		Line: line, TotalBytes: g.runner.Device.TotalMemory(),
		LimitBytes: g.limit(), Settings: g.settings().String(),
	}
}

func (g *game) limit() *uint64 {
	if n, ok := g.runner.Allocator.Limit(); ok {
		return &n
	}
	return nil
}

// settings are those in force.
func (g *game) settings() settings.Settings {
	s := g.runner.Allocator.Settings()
	s.PerProcessMemoryFraction = g.fraction
	return s
}

// moment describes the state as it is now.
func (g *game) moment() Moment {
	t := g.totals()
	m := Moment{
		Sentences: list(g.sentences), Events: list(g.events), Message: g.message,
		Settings: g.settings().String(), LimitBytes: g.limit(),
		ReservedBytes: t.Reserved, AllocatedBytes: t.Allocated, PendingBytes: t.Active - t.Allocated, RequestedBytes: t.Requested,
		Requests: g.requests, Hits: g.hits, ChapterRequests: g.chapterRequests, ChapterHits: g.chapHits,
		DriverCostUs: g.runner.Device.Cost().Microseconds(),
		Segments:     []Segment{}, Blocks: []Block{}, Tenants: []Tenant{},
	}
	all, names := g.runner.Allocators()
	for k, a := range all {
		stats := a.Stats()
		m.ReleasableBytes += a.Releasable()
		m.DriverAllocs += stats.NumDeviceAlloc
		m.DriverFrees += stats.NumDeviceFree
		m.Retries += stats.NumAllocRetries
		m.OOMs += stats.NumOOMs
		segments := a.Segments()
		for i := range segments {
			g.addRun(&m, &segments[i], names[k])
		}
	}
	if usage, ok := g.runner.Tenants(); ok {
		for _, t := range usage.Tenants {
			m.Tenants = append(m.Tenants, Tenant{t.Name, t.Reserved, t.Guarantee, t.Ceiling})
		}
	}
	for i := range m.Segments {
		s := &m.Segments[i]
		for _, b := range s.Blocks {
			if b[2] == stateFree {
				m.FreeBytes += uint64(b[1])
				m.FreeBlocks++
				m.LargestFreeBytes = max(m.LargestFreeBytes, uint64(b[1]))
			}
		}
	}
	if t := g.touched; t.Size > 0 {
		m.Touched = &Touched{t.Addr, t.Size}
	}
	m.StrandedBytes = m.FreeBytes - m.ReleasableBytes
	if m.ReservedBytes > 0 {
		m.Fragmentation = float64(m.ReservedBytes-m.AllocatedBytes) / float64(m.ReservedBytes)
	}
	if m.FreeBytes > 0 {
		m.External = 1 - float64(m.LargestFreeBytes)/float64(m.FreeBytes)
	}
	return m
}

// totals are those of all allocators together.
func (g *game) totals() alloc.Totals {
	var sum alloc.Totals
	all, _ := g.runner.Allocators()
	for _, a := range all {
		t := a.Serial().Totals()
		sum.Reserved += t.Reserved
		sum.Allocated += t.Allocated
		sum.Active += t.Active
		sum.Requested += t.Requested
	}
	return sum
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// addRun adds a plain segment, or a mapped run of an expandable one to the
// entry of its reservation. Runs come by address.
func (g *game) addRun(m *Moment, s *alloc.Segment, tenant string) {
	base := s.Address
	if s.Expandable {
		if i := slices.IndexFunc(g.ranges, func(r alloc.Span) bool { return r.Addr <= s.Address && s.Address < r.End() }); i >= 0 {
			base = g.ranges[i].Addr
		}
	}
	last := len(m.Segments) - 1
	if last < 0 || m.Segments[last].Address != base {
		name, _, _ := g.runner.Place(s.Address)
		m.Segments = append(m.Segments, Segment{
			Name: name, Address: base, Stream: s.Stream, Pool: [2]uint64{s.Pool.First, s.Pool.Second},
			Type: s.Type(), Expandable: s.Expandable, Tenant: tenant,
		})
		last++
	}
	out := &m.Segments[last]
	if gap := s.Address - base - out.Span; gap > 0 {
		out.Blocks = append(out.Blocks, [5]int64{int64(out.Span), int64(gap), stateUnmapped, -1, 0})
		out.Span += gap
	}
	for _, b := range s.Blocks {
		entry := [5]int64{int64(b.Address - base), int64(b.Size), stateFree, -1, 0}
		if b.State != alloc.Inactive {
			entry[2] = stateAllocated
			if b.State == alloc.ActivePendingFree {
				entry[2] = statePending
			}
			entry[3], entry[4] = int64(len(m.Blocks)), int64(b.RequestedSize)
			m.Blocks = append(m.Blocks, g.block(out, &b, entry[2] == statePending))
		}
		out.Blocks = append(out.Blocks, entry)
	}
	out.Size += s.TotalSize
	out.Span += s.TotalSize
}

func (g *game) block(s *Segment, b *alloc.Block, pending bool) Block {
	out := Block{
		Address: b.Address, Segment: s.Name, Offset: b.Address - s.Address, Size: b.Size, Requested: b.RequestedSize,
		Stream: s.Stream, Pending: pending, Uses: []uint64{},
	}
	if h := g.held[b.Address]; h != nil {
		out.Name, out.Uses = h.name, list(h.uses)
		if h == g.last {
			g.touched = alloc.Span{Addr: b.Address, Size: b.Size}
		}
	}
	return out
}
