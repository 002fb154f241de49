package alloc

// statFamily names a statistic that is kept for all memory, the small pools
// and the large pools (spec 9.1).
type statFamily uint8

const (
	statAllocation statFamily = iota
	statSegment
	statActive
	statInactiveSplit
	statAllocatedBytes
	statReservedBytes
	statActiveBytes
	statInactiveSplitBytes
	statRequestedBytes
	numFamilies
)

var familyNames = [numFamilies]string{
	"allocation", "segment", "active", "inactive_split", "allocated_bytes",
	"reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes",
}

// counters hold the statistics in the form that is cheapest to update: what
// went up and what went down, per pool kind. Currents, and the sums over both
// kinds, are derived.
//
// Every malloc raises five families, and hardly any reaches a new peak. So
// peaks are looked at only when a fall follows rises, and only if the slack is
// used up: a lower bound of how far each of the five is below its peak.
type counters struct {
	kinds [numKinds]kindCounters
	peak  [numFamilies]int64 // over both kinds
	slack slack              // over both kinds

	oversizeAllocations Stat
	oversizeSegments    Stat

	allocRetries, ooms, syncs int64
	deviceAllocs, deviceFrees int64
	deviceBefore              int64 // both, before the last reset
	maxSplitSize              int64
}

type kindCounters struct {
	up, down   [numFamilies]int64
	peak       [numFamilies]int64
	slack      slack
	up0, down0 [numFamilies]int64 // at the last reset of the accumulated values
}

// slack bounds peak - current from below, for the families that count blocks
// and for those that count bytes. Below zero the peaks are out of date.
type slack struct {
	blocks, bytes int64
}

// risen are the families that handOut raises.
var risen = [...]statFamily{statAllocation, statAllocatedBytes, statActive, statActiveBytes, statRequestedBytes}

func (c *kindCounters) current(f statFamily) int64 { return c.up[f] - c.down[f] }

// add moves one statistic by one rise or one fall.
func (s *counters) add(k poolKind, f statFamily, x int64) {
	c := &s.kinds[k]
	if x > 0 {
		c.up[f] += x
		s.raisePeak(k, f)
	} else {
		c.down[f] -= x
	}
}

// addSplit moves the two inactive_split statistics, each by one rise or fall.
func (s *counters) addSplit(k poolKind, blocks, bytes int64) {
	c := &s.kinds[k]
	if blocks > 0 {
		c.up[statInactiveSplit] += blocks
		s.raisePeak(k, statInactiveSplit)
	} else {
		c.down[statInactiveSplit] -= blocks
	}
	if bytes > 0 {
		c.up[statInactiveSplitBytes] += bytes
		s.raisePeak(k, statInactiveSplitBytes)
	} else {
		c.down[statInactiveSplitBytes] -= bytes
	}
}

func (s *counters) raisePeak(k poolKind, f statFamily) {
	c := &s.kinds[k&1]
	cur := c.current(f)
	c.peak[f] = max(c.peak[f], cur)
	s.peak[f] = max(s.peak[f], cur+s.kinds[1-k&1].current(f))
}

// handOut counts a block of size bytes handed out for a request.
func (s *counters) handOut(k poolKind, size, requested int64) {
	c := &s.kinds[k]
	c.up[statAllocation]++
	c.up[statAllocatedBytes] += size
	c.up[statActive]++
	c.up[statActiveBytes] += size
	c.up[statRequestedBytes] += requested
	c.slack.blocks--
	c.slack.bytes -= size // no less than requested
	s.slack.blocks--
	s.slack.bytes -= size
}

// freeRequested counts the call of free for a block of size bytes.
func (s *counters) freeRequested(k poolKind, size int64) {
	c := &s.kinds[k]
	if c.slack.blocks < 0 || c.slack.bytes < 0 || s.slack.blocks < 0 || s.slack.bytes < 0 {
		s.updatePeaks()
	}
	c.down[statAllocation]++
	c.down[statAllocatedBytes] += size
}

// freeCompleted counts the return of a block of size bytes to its pool.
func (s *counters) freeCompleted(k poolKind, size, requested int64) {
	c := &s.kinds[k]
	if c.slack.blocks < 0 || c.slack.bytes < 0 || s.slack.blocks < 0 || s.slack.bytes < 0 {
		s.updatePeaks()
	}
	c.down[statActive]++
	c.down[statActiveBytes] += size
	c.down[statRequestedBytes] += requested
}

// freed counts a free of a block of size bytes that is completed at once: all five
// families fall, by the request at least, and the slack rises. Other frees do not
// raise it, which only makes the bound less sharp.
func (s *counters) freed(k poolKind, size, requested int64) {
	c := &s.kinds[k]
	if c.slack.blocks < 0 || c.slack.bytes < 0 || s.slack.blocks < 0 || s.slack.bytes < 0 {
		s.updatePeaks()
	}
	c.down[statAllocation]++
	c.down[statAllocatedBytes] += size
	c.down[statActive]++
	c.down[statActiveBytes] += size
	c.down[statRequestedBytes] += requested
	c.slack.blocks++
	c.slack.bytes += requested
	s.slack.blocks++
	s.slack.bytes += requested
}

// updatePeaks brings the peaks and the slack up to date.
func (s *counters) updatePeaks() {
	for _, f := range risen {
		for k := range s.kinds {
			s.raisePeak(poolKind(k), f)
		}
	}
	var below [numFamilies]int64 // how far each family is below its peak
	for f := range below {
		below[f] = s.peak[f]
	}
	for k := range s.kinds {
		c := &s.kinds[k]
		var own [numFamilies]int64
		for _, f := range risen {
			own[f] = c.peak[f] - c.current(f)
			below[f] -= c.current(f)
		}
		c.slack = leastSlack(&own)
	}
	s.slack = leastSlack(&below)
}

func leastSlack(below *[numFamilies]int64) slack {
	return slack{
		blocks: min(below[statAllocation], below[statActive]),
		bytes:  min(below[statAllocatedBytes], below[statActiveBytes], below[statRequestedBytes]),
	}
}

// Stat is one statistic: its value, its highest value, and the sums of all
// rises and all falls.
type Stat struct {
	Current, Peak, Allocated, Freed int64
}

func (s *Stat) add(x int64) {
	s.Current += x
	if x > 0 {
		s.Allocated += x
		s.Peak = max(s.Peak, s.Current)
	} else {
		s.Freed -= x
	}
}

// PoolStat is a statistic for all memory and for the two kinds of pools.
type PoolStat struct {
	All, Small, Large Stat
}

// Stats are the statistics of an allocator, those of torch.cuda.memory_stats().
type Stats struct {
	Allocation, Segment, Active, InactiveSplit  PoolStat
	AllocatedBytes, ReservedBytes, ActiveBytes  PoolStat
	InactiveSplitBytes, RequestedBytes          PoolStat
	OversizeAllocations, OversizeSegments       Stat
	NumAllocRetries, NumOOMs, NumSyncAllStreams int64
	NumDeviceAlloc, NumDeviceFree, MaxSplitSize int64
}

// families lists the fields of s in the order of statFamily.
func (s *Stats) families() [numFamilies]*PoolStat {
	return [numFamilies]*PoolStat{
		&s.Allocation, &s.Segment, &s.Active, &s.InactiveSplit, &s.AllocatedBytes,
		&s.ReservedBytes, &s.ActiveBytes, &s.InactiveSplitBytes, &s.RequestedBytes,
	}
}

// Stats returns the statistics as they are now.
func (a *Allocator) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats.read()
}

func (s *counters) read() Stats {
	s.updatePeaks()
	out := Stats{
		OversizeAllocations: s.oversizeAllocations,
		OversizeSegments:    s.oversizeSegments,
		NumAllocRetries:     s.allocRetries,
		NumOOMs:             s.ooms,
		NumSyncAllStreams:   s.syncs,
		NumDeviceAlloc:      s.deviceAllocs,
		NumDeviceFree:       s.deviceFrees,
		MaxSplitSize:        s.maxSplitSize,
	}
	for i, ps := range out.families() {
		f := statFamily(i)
		for k, to := range [numKinds]*Stat{&ps.Small, &ps.Large} {
			c := &s.kinds[k]
			*to = Stat{Current: c.current(f), Peak: c.peak[f], Allocated: c.up[f] - c.up0[f], Freed: c.down[f] - c.down0[f]}
			ps.All.Current += to.Current
			ps.All.Allocated += to.Allocated
			ps.All.Freed += to.Freed
		}
		ps.All.Peak = s.peak[f]
	}
	return out
}

// ResetPeakStats sets every peak to the current value.
func (a *Allocator) ResetPeakStats() {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.stats
	s.updatePeaks()
	for f := range numFamilies {
		s.peak[f] = 0
		for k := range s.kinds {
			c := &s.kinds[k]
			c.peak[f] = c.current(f)
			s.peak[f] += c.peak[f]
		}
	}
	s.updatePeaks() // there is no slack any more
	s.oversizeAllocations.Peak = s.oversizeAllocations.Current
	s.oversizeSegments.Peak = s.oversizeSegments.Current
}

// ResetAccumulatedStats sets the sums of rises and falls and the counters to
// zero; currents, peaks and max_split_size stay.
func (a *Allocator) ResetAccumulatedStats() {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.stats
	s.updatePeaks()
	for k := range s.kinds {
		c := &s.kinds[k]
		c.up0, c.down0 = c.up, c.down
	}
	for _, o := range []*Stat{&s.oversizeAllocations, &s.oversizeSegments} {
		o.Allocated, o.Freed = 0, 0
	}
	s.deviceBefore += s.deviceAllocs + s.deviceFrees
	s.allocRetries, s.ooms, s.syncs, s.deviceAllocs, s.deviceFrees = 0, 0, 0, 0, 0
}

// Map returns the statistics under the 122 keys of torch.cuda.memory_stats().
func (s Stats) Map() map[string]int64 {
	m := make(map[string]int64, 122)
	put := func(name string, st Stat) {
		m[name+".current"] = st.Current
		m[name+".peak"] = st.Peak
		m[name+".allocated"] = st.Allocated
		m[name+".freed"] = st.Freed
	}
	for f, ps := range s.families() {
		put(familyNames[f]+".all", ps.All)
		put(familyNames[f]+".small_pool", ps.Small)
		put(familyNames[f]+".large_pool", ps.Large)
	}
	put("oversize_allocations", s.OversizeAllocations)
	put("oversize_segments", s.OversizeSegments)
	m["num_alloc_retries"] = s.NumAllocRetries
	m["num_ooms"] = s.NumOOMs
	m["num_sync_all_streams"] = s.NumSyncAllStreams
	m["num_device_alloc"] = s.NumDeviceAlloc
	m["num_device_free"] = s.NumDeviceFree
	m["max_split_size"] = s.MaxSplitSize
	return m
}
