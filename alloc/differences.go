package alloc

import "github.com/ashlar-mem/ashlar/settings/pytorch"

// FreeOrder is the order of the free blocks of one stream and size: a request
// takes the first.
type FreeOrder uint8

// The orders that releases of PyTorch have had.
const (
	ByAddress  FreeOrder = iota // up to 2.11
	ByCreation                  // in 2.12: the block that was made first; the front of a split is a new one
	BySegment                   // from 2.13 on: the segment that was obtained first, in it the lowest address
)

// Differences are the rules that not all releases of PyTorch share. In the zero
// value they are those of 2.11, which docs/spec describes. The sections named here
// are of that specification; docs/versions.md has the table with sources.
type Differences struct {
	Order FreeOrder // spec 2.1

	// UnroundedOne: where roundup_power2_divisions is 1, requests above 512 bytes are
	// not rounded at all (spec 1.2). Up to 2.3.
	UnroundedOne bool
	// PlainPrivate: private pools never get expandable segments, though whether a
	// block is split goes by the setting (spec 3 step 4, 4.1). Up to 2.4.
	PlainPrivate bool
	// KeptStreams: streams recorded on a block under a route are not forgotten when
	// it is freed under it (spec 5.5). Up to 2.3.
	KeptStreams bool
	// ExpandableAsserts: the targeted release does not skip expandable memory but
	// stops at an assertion (spec 7.1). Up to 2.4.
	ExpandableAsserts bool
	// OldestRoute: of several routes that accept a request the oldest wins, not the
	// newest (spec 8.3). Up to 2.9.
	OldestRoute bool
	// WholeIsLimit: a memory fraction of 1 is a limit like any other (spec 3.2). Up
	// to 2.9.
	WholeIsLimit bool
	// OverflowLast: pools registered with use_on_oom are tried after the full
	// release, not right after the first attempt (spec 3 step 9). Up to 2.10.
	OverflowLast bool
	// RoundedLimit: the limit is the product of fraction and memory rounded to the
	// nearest byte, not truncated (spec 3.2). From 2.13 on.
	RoundedLimit bool
	// CaptureOnly: only captures keep a request from processing events and from the
	// full release, and a free from its events; routes of MemPools do not (spec 8.4).
	// From 2.13 on.
	CaptureOnly bool
	// Hints: a request may name the address it would like, see [Allocator.MallocAt].
	// From 2.13 on.
	Hints bool
}

// DifferencesOf returns the rules of a release. Version 0 is [pytorch.Default];
// what is older or newer than any release known counts as the nearest.
func DifferencesOf(v pytorch.Version) Differences {
	if v == 0 {
		v = pytorch.Default
	}
	upTo := func(minor int) bool { return v <= pytorch.Of(2, minor) }
	d := Differences{
		UnroundedOne: upTo(3), KeptStreams: upTo(3),
		PlainPrivate: upTo(4), ExpandableAsserts: upTo(4),
		OldestRoute: upTo(9), WholeIsLimit: upTo(9),
		OverflowLast: upTo(10),
		RoundedLimit: !upTo(12), CaptureOnly: !upTo(12), Hints: !upTo(12),
	}
	switch {
	case upTo(11):
	case upTo(12):
		d.Order = ByCreation
	default:
		d.Order = BySegment
	}
	return d
}

// ranked returns the rank of a block that enters the free set: where it stands
// among those of its size. The block keeps it as long as it is there, and in the
// order ByCreation for good.
func (a *Allocator) ranked(b *block) uint64 {
	if a.rules.Order == ByAddress {
		b.rank = b.addr
	} else if a.rules.Order == BySegment {
		b.rank = a.segments[b.seg].place + b.addr - a.segments[b.seg].base
	}
	return b.rank
}

// nextPlace returns the place of a new segment in the order BySegment: behind all
// others. Places are like addresses, so that a block's is its segment's and how far
// it lies in it.
func (a *Allocator) nextPlace(size uint64) uint64 {
	if a.placed+size > maxAddress {
		a.placeAnew()
	}
	place := a.placed
	a.placed += size
	return place
}

// placeAnew closes the gaps that segments left when they were given back.
func (a *Allocator) placeAnew() {
	free := a.freeBlocks()
	for _, id := range free {
		a.removeFree(id)
	}
	a.placed = 0
	for _, id := range a.segmentsByPlace() {
		a.segments[id].place = a.placed
		a.placed += a.segments[id].size
	}
	a.insertRanked(free)
}

// insertRanked puts blocks back into the free set after their ranks changed.
func (a *Allocator) insertRanked(ids []blockID) {
	for _, id := range ids {
		b := &a.blocks[id]
		a.streamPools[b.streamPool].free.insert(b.size, a.ranked(b), id)
	}
}
