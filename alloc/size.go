package alloc

import (
	"math/bits"

	"github.com/ashlar-mem/ashlar/settings"
)

// Sizes in bytes that decide where a request goes (spec 1.1).
const (
	minBlock   = 512      // every block size is a multiple of this
	smallMax   = 1 << 20  // rounded sizes up to this use the small pool
	smallSeg   = 2 << 20  // a plain segment of the small pool; granule of small expandable segments
	largeMin   = 10 << 20 // rounded sizes from this on get a segment of their own size
	largeRound = 2 << 20  // ... rounded up to a multiple of this
	splitRest  = 1 << 20  // a large block is split if more than this remains
	maxRequest = 1 << 60  // requests from here on fail at once
)

// SmallSegment is the size of every plain segment of the small pool. Segments
// of the large pool are larger: no setting makes them smaller than 10 MiB.
const SmallSegment = smallSeg

// poolKind tells the two pools of a pair apart.
type poolKind uint8

const (
	small poolKind = iota
	large
	numKinds
)

func kindOf(rounded uint64) poolKind {
	if rounded <= smallMax {
		return small
	}
	return large
}

// round gives the block size wanted for a request (spec 1.2).
func (a *Allocator) round(request uint64) uint64 {
	if request < minBlock {
		return minBlock
	}
	if a.divided {
		if d := a.cfg.RoundupPower2Divisions[RoundingEntry(request)]; d > 1 && request > minBlock*d {
			return roundToDivision(request, d)
		}
	}
	return (request + minBlock - 1) &^ (minBlock - 1)
}

// RoundingEntry is the entry of settings.Settings.RoundupPower2Divisions that
// decides how a request is rounded.
func RoundingEntry(request uint64) int {
	return min(max(bits.Len64(request)-1-20, 0), len(settings.Settings{}.RoundupPower2Divisions)-1)
}

// roundToDivision rounds up to one of the d equal steps between two powers of two.
func roundToDivision(request, d uint64) uint64 {
	floor := uint64(1) << (bits.Len64(request) - 1)
	if request == floor {
		return request
	}
	return roundUp(request, floor/d)
}

// segmentSize is the size of the plain segment that a rounded size asks for
// (spec 1.3). The limit check and the out-of-memory message use it in every
// mode.
func (a *Allocator) segmentSize(rounded uint64) uint64 {
	switch {
	case rounded <= smallMax:
		return smallSeg
	case rounded < largeMin:
		return a.cfg.LargeSegmentSize
	default:
		return roundUp(rounded, largeRound)
	}
}

// granule is the size of the handles that an expandable segment is mapped with.
func (a *Allocator) granule(k poolKind) uint64 {
	if k == small {
		return smallSeg
	}
	return a.cfg.LargeSegmentSize
}

// roundUp rounds n up to a multiple of unit.
func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }
