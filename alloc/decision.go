package alloc

// A Decision is one rule as it was applied, with the numbers that decided. The
// allocator passes decisions to the function of [WithExplainer] in the order in
// which it takes them, so that its actions can be explained without a second copy
// of its rules. Events say what happened, decisions say why.
type Decision interface{ decision() }

// Span is a piece of memory: a block or a segment.
type Span struct {
	Addr, Size uint64
}

// End is the first address behind the span.
func (s Span) End() uint64 { return s.Addr + s.Size }

// Rounding is the size of the block that a request looks for (spec 1.2).
type Rounding struct {
	Request, Rounded uint64
	Unit             uint64 // Rounded is a multiple of it
	Divisions        uint64 // of roundup_power2_divisions, if they decided; else 0
}

// PoolChoice is where a request looks for a free block: one pool, and in it
// the blocks of one stream (spec 1.3, 2.2).
type PoolChoice struct {
	Rounded    uint64
	SmallMax   uint64 // sizes up to this use the small pool
	Large      bool
	Pool       PoolID
	Stream     uint64
	Expandable bool // new memory would be mapped into an expandable segment
}

// BestFit is a search that found a free block (spec 2.2).
type BestFit struct {
	Rounded uint64
	Block   Span
	// Smallest is the smallest block that is large enough. It differs from Block
	// where blocks of expandable segments were passed over.
	Smallest Span
	// Expandable says whether expandable segments are on for the request.
	Expandable bool
	// GrowableSize is the size of Block plus the unmapped range behind it, if blocks
	// of expandable segments were compared by that; else 0.
	GrowableSize uint64
}

// MissReason says why a search found no block.
type MissReason uint8

// The reasons. The last two come from max_split_size_mb, which keeps blocks of
// that size and more for requests of that size and more.
const (
	missNone       MissReason = iota // it found one
	TooSmall                         // no free block is large enough
	OnlyExpandable                   // those that are large enough belong to expandable segments, which are off
	KeptForLarge                     // the block is at least max_split, the request is not
	TooMuchLarger                    // both are, but the block is larger by max_non_split_rounding or more
)

// NoFit is a search that found no block (spec 2.2).
type NoFit struct {
	Rounded uint64
	Large   bool
	Stream  uint64
	Reason  MissReason
	Refused Span   // the block that was looked at and not used; Size 0 if none
	Bound   uint64 // blocks of this size or more are refused: max_split, or the request plus max_non_split_rounding

	Free    uint64 // bytes in free blocks of the pool and the stream
	Blocks  int    // and their number
	Largest uint64
	// Elsewhere is the largest free block of the same pool on another stream,
	// OtherStream that stream. Size 0 if there is none.
	Elsewhere   Span
	OtherStream uint64
}

// SplitReason says why a block was split or not (spec 4.1).
type SplitReason uint8

// The reasons, those for splitting last.
const (
	PoolNeverSplits   SplitReason = iota // the private pool was made with no_split
	RestBelowMinimum                     // small pool, or expandable: less than 512 bytes remain
	RestNotAboveBound                    // large pool: 1 MiB or less remains
	RequestIsLarge                       // large pool: the request is at least max_split
	RestIsBlock                          // small pool, or expandable: 512 bytes or more remain
	RestAboveBound                       // large pool: more than 1 MiB remains
)

// Split reports whether the block is split.
func (r SplitReason) Split() bool { return r >= RestIsBlock }

// Splitting is the decision whether the rest of a block becomes a block.
type Splitting struct {
	Block   Span // before
	Rounded uint64
	Rest    uint64
	Reason  SplitReason
	Bound   uint64 // what the rest, or for RequestIsLarge the request, was compared with
}

// SegmentRule says how large a new segment is (spec 1.3).
type SegmentRule uint8

// The rules, by the rounded size of the request.
const (
	SmallSegments  SegmentRule = iota // of the small pool: all have one size
	MediumSegments                    // below 10 MiB: large_segment_size_mb
	OwnSegment                        // 10 MiB or more: the request, rounded up to 2 MiB
)

// SegmentChoice is the size of the segment that is asked of the driver. The
// limit is compared with it also where memory is mapped instead.
type SegmentChoice struct {
	Rounded    uint64
	Segment    uint64
	Rule       SegmentRule
	From       uint64 // the rule holds for sizes of at least this
	To         uint64 // and below this; 0 for no bound
	Unit       uint64 // Segment is a multiple of it, for OwnSegment
	Expandable bool   // memory is mapped into an expandable segment instead
	Limited    bool   // there is a limit to compare with
}

// LimitRefusal is an attempt to get memory that the limit forbids (spec 3.1).
type LimitRefusal struct {
	Reserved, Segment, Limit uint64
}

// DriverRefusal is an attempt to get memory for which the driver has none.
type DriverRefusal struct {
	Size    uint64
	Mapping bool // into an expandable segment
}

// NewSegment is a plain segment obtained from the driver.
type NewSegment struct {
	Segment Span
}

// Reservation is a range of addresses for a new expandable segment (spec 6.1).
type Reservation struct {
	Range   Span
	Granule uint64
	Large   bool
	Stream  uint64
}

// Growth is the place in an expandable segment where memory for a request is
// made (spec 6.2): Free bytes from Addr on are there already.
type Growth struct {
	Addr, Free uint64
	Rounded    uint64
}

// Mapping is memory put into an expandable segment (spec 6.3).
type Mapping struct {
	Mapped  Span
	Missing uint64 // what was needed
	Granule uint64 // it was rounded up to whole ones
}

// Collection is the garbage collection before new memory is asked for (spec
// 7.3). It does something only if Reserved is above Threshold.
type Collection struct {
	Reserved, Threshold, Limit uint64
	Candidates                 int // free whole segments of the large pool
}

// Aging is the decision of a collection about one segment: those that were
// not used for at least the average time go.
type Aging struct {
	Segment  Span
	Age      uint64 // searches of the pool since it was freed
	Average  float64
	Released bool
}

// TargetedRelease looks for free segments of at least max_split bytes to give
// back: one of Want bytes, or several that are as much together (spec 7.1). Those
// that go follow as [Released].
type TargetedRelease struct {
	Want uint64
}

// FullRelease gives back all cached memory that can be given back (spec 7.2).
type FullRelease struct {
	Retry bool // for a request that could not be served; else it was asked for
}

// Released is a segment given back to the driver.
type Released struct {
	Segment Span
}

// Unmapping is memory of an expandable segment given back (spec 6.4): the
// whole granules of a free block.
type Unmapping struct {
	Block, Unmapped Span
	Granule         uint64
}

// Pinned is a free block that a full release cannot give back: other blocks
// of its segment are in use, or, in an expandable segment, it holds no whole
// granule.
type Pinned struct {
	Block   Span
	Granule uint64 // 0 in a plain segment
}

// Return is a block that goes back to its pool and merges with its free
// neighbours (spec 4.4).
type Return struct {
	Block       Span
	Left, Right uint64 // bytes of the free neighbours it merged with; 0 if none
	Whole       bool   // what came out is the whole segment
	// Of an expandable segment: Grows says that unmapped addresses follow what
	// came out, Apart that no memory beside it is mapped.
	Grows, Apart bool
	Large        bool
	Stream       uint64
}

// Merged is the free block that came out.
func (r Return) Merged() Span { return Span{r.Block.Addr - r.Left, r.Left + r.Block.Size + r.Right} }

// StreamUse is a call of RecordStream. For the stream that the block was
// allocated on it changes nothing (spec 5.1).
type StreamUse struct {
	Block  Span
	Stream uint64
	Own    bool
}

// Pending is a freed block that waits for other streams (spec 5.2).
type Pending struct {
	Block   Span
	Streams []uint64
}

// StillPending is a freed block that a malloc finds still in use (spec 5.3).
type StillPending struct {
	Block  Span
	Stream uint64
}

// Passed is a freed block whose streams have all passed the free: it returns
// now.
type Passed struct {
	Block Span
}

func (Rounding) decision()        {}
func (PoolChoice) decision()      {}
func (BestFit) decision()         {}
func (NoFit) decision()           {}
func (Splitting) decision()       {}
func (SegmentChoice) decision()   {}
func (LimitRefusal) decision()    {}
func (DriverRefusal) decision()   {}
func (NewSegment) decision()      {}
func (Reservation) decision()     {}
func (Growth) decision()          {}
func (Mapping) decision()         {}
func (Collection) decision()      {}
func (Aging) decision()           {}
func (TargetedRelease) decision() {}
func (FullRelease) decision()     {}
func (Released) decision()        {}
func (Unmapping) decision()       {}
func (Pinned) decision()          {}
func (Return) decision()          {}
func (StreamUse) decision()       {}
func (Pending) decision()         {}
func (StillPending) decision()    {}
func (Passed) decision()          {}
