package alloc

import (
	"math/bits"
	"sort"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// Sizes in bytes that no setting changes (spec 1.1).
const (
	// MinBlock is the least size of a block. Every block begins at a multiple
	// of it and is a whole number of it long.
	MinBlock = 512
	// SmallMax is the largest size that the small pool serves.
	SmallMax = 1 << 20
	// SmallSegment is the size of every plain segment of the small pool, and
	// the granule of its expandable ones. Segments of the large pool are larger.
	SmallSegment = 2 << 20
	// OwnSegmentMin is the least rounded size that gets a segment of its own.
	OwnSegmentMin = 10 << 20
	// SegmentUnit is the unit of segment sizes: every segment is a multiple of
	// it, unless large_segment_size_mb is odd.
	SegmentUnit = 2 << 20
	// UnsplitMax is the largest rest that is not split off a block of the large
	// pool (spec 4.1). Expandable segments split off any rest.
	UnsplitMax = 1 << 20
)

// maxRequest is the least size that fails at once.
const maxRequest = 1 << 60

// Rules are those of one release of PyTorch under given settings: what it does
// otherwise than 2.11, and the arithmetic of sizes with its inverse, from a request
// to its block and segment, and from a block or segment back to the request. An
// [Allocator] follows them; readers of traces use them too.
type Rules struct {
	Differences
	mediumSegment uint64 // segments that requests below OwnSegmentMin share; granule of the large pool
	divisions     [16]uint64
	divided       bool // some entry of divisions changes how requests are rounded
	unaligned     bool // not every size is a multiple of MinBlock
}

// RulesOf returns the rules of a release under the given settings; version 0 is
// [pytorch.Default]. A large segment size of 0, which PyTorch refuses but a broken
// file may contain, counts as the default; one that no device has, as the least such.
func RulesOf(s settings.Settings, v pytorch.Version) Rules { return DifferencesOf(v).rules(s) }

func (d Differences) rules(s settings.Settings) Rules {
	r := Rules{Differences: d, mediumSegment: min(s.LargeSegmentSize, maxRequest), divisions: s.RoundupPower2Divisions}
	if r.mediumSegment == 0 {
		r.mediumSegment = settings.Default().LargeSegmentSize
	}
	for _, d := range r.divisions {
		r.unaligned = r.unaligned || d == 1 && r.UnroundedOne
		r.divided = r.divided || r.unaligned || d > 1
	}
	return r
}

// unit returns what every size and address of a block is a multiple of.
func (r *Rules) unit() uint64 {
	if r.unaligned {
		return 1
	}
	return MinBlock
}

// Tightest returns the settings under which blocks take the least memory: without divisions
// a request is rounded up to whole minimal blocks, and expandable segments split
// off any rest (spec 1.2, 4.1).
func Tightest() settings.Settings {
	s := settings.Default()
	s.ExpandableSegments = true
	return s
}

// Round returns the size of the block that a request looks for (spec 1.2).
func (r *Rules) Round(request uint64) uint64 {
	if request < MinBlock {
		return MinBlock
	}
	if r.divided {
		if d := r.divisionsOf(request); d > 0 {
			return roundToDivision(request, d)
		}
	}
	return (request + MinBlock - 1) &^ (MinBlock - 1)
}

// LeastRequest returns the least request that looks for a block of the rounded
// size or a larger one: the inverse of [Rules.Round].
func (r *Rules) LeastRequest(rounded uint64) uint64 {
	return 1 + uint64(sort.Search(int(rounded), func(i int) bool { return r.Round(uint64(i)+1) >= rounded }))
}

// LeastRounded bounds from below what a request takes under any settings if it
// takes rounded bytes under some: two divisions, the coarsest, round up by less
// than one half (spec 1.2).
func LeastRounded(rounded uint64) uint64 { return rounded / 3 * 2 }

// divisionsOf returns the number of steps between two powers of two to which a
// request is rounded up; 0 if it is rounded to whole minimal blocks.
func (r *Rules) divisionsOf(request uint64) uint64 {
	d := r.divisions[RoundingEntry(request)]
	if d == 0 || d == 1 && !r.UnroundedOne || request <= MinBlock*d {
		return 0
	}
	return d
}

// RoundingEntry returns the index in settings.Settings.RoundupPower2Divisions of
// the entry that decides how a request is rounded.
func RoundingEntry(request uint64) int {
	return min(max(bits.Len64(request)-1-20, 0), len(Rules{}.divisions)-1)
}

// roundToDivision rounds up to one of the d equal steps between two powers of two.
func roundToDivision(request, d uint64) uint64 {
	if d == 1 || request&(request-1) == 0 {
		return request
	}
	return roundUp(request, divisionStep(request, d))
}

// divisionStep returns the distance of d equal steps from the power of two at or
// below the request to the next one. Where there are fewer bytes than steps it is
// the whole distance.
func divisionStep(request, d uint64) uint64 {
	floor := uint64(1) << (bits.Len64(request) - 1)
	if d > floor { // from 2^55 on MinBlock*d is 0, as in PyTorch
		return floor
	}
	return floor / d
}

// Large reports whether a size belongs to the large pool (spec 1.3). It may be
// requested or rounded: rounding never changes the pool.
func (r *Rules) Large(size uint64) bool { return kindOf(size) == large }

func kindOf(rounded uint64) poolKind {
	if rounded <= SmallMax {
		return small
	}
	return large
}

// SegmentSize returns the size of the plain segment that a rounded size asks for
// (spec 1.3). The limit check and the out-of-memory message use it in every
// mode.
func (r *Rules) SegmentSize(rounded uint64) uint64 {
	switch segmentRule(rounded) {
	case SmallSegments:
		return SmallSegment
	case MediumSegments:
		return r.mediumSegment
	default:
		return roundUp(rounded, SegmentUnit)
	}
}

func segmentRule(rounded uint64) SegmentRule {
	switch {
	case kindOf(rounded) == small:
		return SmallSegments
	case rounded < OwnSegmentMin:
		return MediumSegments
	default:
		return OwnSegment
	}
}

// Requests bounds the rounded sizes that ask for a plain segment of the given
// size: they are above the first number and not above the second. It is the
// inverse of [Rules.SegmentSize].
func (r *Rules) Requests(segment uint64) (above, most uint64) {
	switch segment {
	case SmallSegment:
		return 0, SmallMax
	case r.mediumSegment: // may also be some request's own
		return SmallMax, segment
	default:
		return segment - min(segment, SegmentUnit), segment
	}
}

// LargeSegment reports whether a plain segment, or a mapping, of the given size
// belongs to the large pool. Those of the small pool all have one size, and no
// setting makes those of the large pool so small.
func (r *Rules) LargeSegment(size uint64) bool { return size != SmallSegment }

// Granule returns the unit in which the large or the small pool maps memory into
// expandable segments (spec 6.1).
func (r *Rules) Granule(large bool) uint64 {
	if large {
		return r.mediumSegment
	}
	return SmallSegment
}

// MappedSize returns how much memory the large or the small pool maps where size
// bytes are missing (spec 6.3).
func (r *Rules) MappedSize(size uint64, large bool) uint64 { return roundUp(size, r.Granule(large)) }

// Releasable returns how many bytes of a block a release gives back to the driver:
// in a plain segment all of it if the block is free and alone there (spec 7.4), in
// an expandable one the whole granules in a free block (spec 6.4).
func (r *Rules) Releasable(s *Segment, b *Block) uint64 {
	switch {
	case b.State != Inactive:
		return 0
	case s.Expandable:
		start, end := wholeGranules(s.Address, Span{b.Address, b.Size}, r.Granule(s.Large))
		return end - start
	case b.Size == s.TotalSize:
		return b.Size
	default:
		return 0
	}
}

// wholeGranules returns the range of the granules, counted from base on, that lie
// entirely in a block.
func wholeGranules(base uint64, block Span, granule uint64) (start, end uint64) {
	start = base + roundUp(block.Addr-base, granule)
	end = base + (block.End()-base)/granule*granule
	return start, max(start, end)
}

// ReservationSize returns how many bytes of addresses an expandable segment
// reserves on a device with total bytes of memory (spec 6.1).
func ReservationSize(total, granule uint64) uint64 { return roundUp(total+total/8, granule) }

// roundUp rounds n up to a multiple of unit.
func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }
