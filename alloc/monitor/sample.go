package monitor

import (
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
)

// Measure is the share of the reserved memory that is watched.
type Measure uint8

// The measures; see the package comment.
const (
	Cached Measure = iota
	Pinned
	InactiveSplit
	measures
)

var measureNames = [measures]string{"cached", "pinned", "inactive_split"}

func (m Measure) String() string {
	if m < measures {
		return measureNames[m]
	}
	return fmt.Sprintf("Measure(%d)", uint8(m))
}

// Sample is what an allocator's memory was used for at one moment.
type Sample struct {
	Time               time.Time `json:"time"`
	ReservedBytes      uint64    `json:"reserved_bytes"`
	AllocatedBytes     uint64    `json:"allocated_bytes"`
	ActiveBytes        uint64    `json:"active_bytes"`
	CachedBytes        uint64    `json:"cached_bytes"`     // reserved and not active
	ReleasableBytes    uint64    `json:"releasable_bytes"` // of those, what a release would give back
	PinnedBytes        uint64    `json:"pinned_bytes"`     // and what it would not
	InactiveSplitBytes uint64    `json:"inactive_split_bytes"`
}

// NewSample measures the memory of an allocator.
func NewSample(a *alloc.Allocator) Sample {
	u := a.Usage()
	cached := u.Reserved - u.Active
	return Sample{
		Time:          time.Now(),
		ReservedBytes: u.Reserved, AllocatedBytes: u.Allocated, ActiveBytes: u.Active,
		CachedBytes: cached, ReleasableBytes: u.Releasable, PinnedBytes: cached - u.Releasable,
		InactiveSplitBytes: u.InactiveSplit,
	}
}

// Share is the part of the reserved memory that a measure counts, from 0 to 1.
// Where nothing is reserved it is 0.
func (s *Sample) Share(m Measure) float64 {
	if s.ReservedBytes == 0 {
		return 0
	}
	part := s.CachedBytes
	switch m {
	case Pinned:
		part = s.PinnedBytes
	case InactiveSplit:
		part = s.InactiveSplitBytes
	}
	return float64(part) / float64(s.ReservedBytes)
}
