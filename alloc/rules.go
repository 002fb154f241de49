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
		if d := a.divisions(request); d > 0 {
			return roundToDivision(request, d)
		}
	}
	return (request + minBlock - 1) &^ (minBlock - 1)
}

// divisions is the number of steps between two powers of two to which a
// request is rounded up; 0 if it is rounded to whole minimal blocks.
func (a *Allocator) divisions(request uint64) uint64 {
	if d := a.cfg.RoundupPower2Divisions[RoundingEntry(request)]; d > 1 && request > minBlock*d {
		return d
	}
	return 0
}

// RoundingEntry is the entry of settings.Settings.RoundupPower2Divisions that
// decides how a request is rounded.
func RoundingEntry(request uint64) int {
	return min(max(bits.Len64(request)-1-20, 0), len(settings.Settings{}.RoundupPower2Divisions)-1)
}

// roundToDivision rounds up to one of the d equal steps between two powers of two.
func roundToDivision(request, d uint64) uint64 {
	if request&(request-1) == 0 {
		return request
	}
	return roundUp(request, divisionStep(request, d))
}

// divisionStep is the distance of d equal steps from the power of two at or
// below the request to the next one.
func divisionStep(request, d uint64) uint64 {
	return uint64(1) << (bits.Len64(request) - 1) / d
}

// segmentSize is the size of the plain segment that a rounded size asks for
// (spec 1.3). The limit check and the out-of-memory message use it in every
// mode.
func (a *Allocator) segmentSize(rounded uint64) uint64 {
	switch segmentRule(rounded) {
	case SmallSegments:
		return smallSeg
	case MediumSegments:
		return a.cfg.LargeSegmentSize
	default:
		return roundUp(rounded, largeRound)
	}
}

func segmentRule(rounded uint64) SegmentRule {
	switch {
	case rounded <= smallMax:
		return SmallSegments
	case rounded < largeMin:
		return MediumSegments
	default:
		return OwnSegment
	}
}

// granule is the size of the handles that an expandable segment is mapped with.
func (a *Allocator) granule(k poolKind) uint64 { return Granule(a.cfg, k == large) }

// Granule is the unit in which the large or the small pool maps memory into
// expandable segments.
func Granule(s settings.Settings, large bool) uint64 {
	if large {
		return s.LargeSegmentSize
	}
	return smallSeg
}

// roundUp rounds n up to a multiple of unit.
func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }
