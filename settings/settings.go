package settings

import (
	"math"
	"strings"
)

// None is the value of MaxSplitSize when no limit is set.
const None uint64 = math.MaxUint64

const mib = 1 << 20

// capMiB is the largest size in MiB that fits 64 bits as bytes. Larger values,
// and with them "-1", are taken as this one (spec 11.3).
const capMiB = math.MaxUint64 / mib

// The backends of spec 11.3.
const (
	Native          = "native"
	CudaMallocAsync = "cudaMallocAsync"
)

// Settings are the values of all keys. Two settings are equal if == says so.
// The zero value is not useful, start from [Default].
type Settings struct {
	// MaxSplitSize is the size in bytes from which blocks are not split;
	// None if not set.
	MaxSplitSize uint64
	// MaxNonSplitRounding is how many bytes larger than the request an
	// unsplittable block may be. It follows LargeSegmentSize unless set.
	MaxNonSplitRounding uint64
	// LargeSegmentSize is the size in bytes of segments for medium requests
	// and the granule of large expandable segments.
	LargeSegmentSize uint64
	// GarbageCollectionThreshold is the fraction of the memory limit above
	// which cached blocks are collected; 0 is off.
	GarbageCollectionThreshold float64
	// RoundupPower2Divisions is the table of spec 11.4: entry i holds for
	// requests from 2^i MiB to below 2^(i+1) MiB, the first one also for
	// everything below and the last one for everything above. 0 and 1 are off.
	RoundupPower2Divisions [16]uint64
	ExpandableSegments     bool
	// PinnedUseBackgroundThreads and the other Pinned fields concern page
	// locked host memory only.
	PinnedUseBackgroundThreads bool
	// Backend is Native or CudaMallocAsync. It is fixed once the program runs.
	Backend                  string
	ReleaseLockOnMalloc      bool
	PinnedUseHostRegister    bool
	PinnedNumRegisterThreads uint64
	// PinnedReserveSegmentSize is in bytes; 0 is off.
	PinnedReserveSegmentSize      uint64
	GraphCaptureRecordStreamReuse bool
	// PerProcessMemoryFraction limits reserved memory to that part of the
	// device; 1 is no limit. PyTorch reads it when the device is set up and
	// ignores later changes (spec 3.2).
	PerProcessMemoryFraction float64
}

// Default returns the settings of an empty text.
func Default() Settings {
	return Settings{
		MaxSplitSize:             None,
		MaxNonSplitRounding:      20 * mib,
		LargeSegmentSize:         20 * mib,
		Backend:                  Native,
		PinnedNumRegisterThreads: 1,
		PerProcessMemoryFraction: 1,
	}
}

// Parse reads a text as PyTorch does when the program starts. An error is an
// *[Error]; the settings returned with it hold what was read before it.
func Parse(conf string) (Settings, error) {
	p := parser{settings: Default(), tokens: tokenize(conf)}
	err := p.parse()
	return p.settings, err
}

// Apply returns what s becomes when PyTorch is given conf while it runs, which
// also happens if there is an error: see the package comment. The backend
// cannot change then.
func (s Settings) Apply(conf string) (Settings, error) {
	p := parser{settings: s, tokens: tokenize(conf), running: true}
	err := p.parse()
	return p.settings, err
}

// String writes the settings in canonical form: only what differs from the
// defaults, in a fixed order of keys. The empty text stands for the defaults.
// Whatever [Parse] or [Settings.Apply] can return, Parse(s.String()) == s.
func (s Settings) String() string {
	var fields []string
	for i := range options {
		if value := options[i].format(s); value != "" {
			fields = append(fields, options[i].key+":"+value)
		}
	}
	return strings.Join(fields, ",")
}
