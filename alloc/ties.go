package alloc

import "slices"

// Tie is a free block of a restored state whose place among others of its size the
// state does not tell.
type Tie struct {
	Block Span
	// Object is what the order goes by: in the order ByCreation the number that
	// WithStartOrder gave the block object, in the order BySegment the address of
	// the segment.
	Object uint64
}

// WithStartOrder tells [Allocator.Restore] in which order the objects of a restored
// state were made: block objects in the order ByCreation, segments in the order
// BySegment. Each is named by its address; place returns its number. Without it they
// count as made in the order of their addresses.
func WithStartOrder(place func(addr uint64) uint32) Option {
	return func(a *Allocator) { a.startOrder = place }
}

// WithTies has ask choose which of several blocks comes first, where only the order
// of a restored state decides, which is a guess. ask returns its position. It is
// asked for each request, and for each step of a release.
func WithTies(ask func(tied []Tie, release bool) int) Option {
	return func(a *Allocator) { a.askTies = ask }
}

// chosen is the block that a request considers, given the first in the set: where
// sizes are unaligned, or ties are asked for.
func (a *Allocator) chosen(sp *streamPool, id blockID, rounded uint64, expandable bool) blockID {
	if a.rules.unaligned {
		id = a.leastUnaligned(sp, id, rounded)
	}
	if a.askTies == nil || id == noBlock || a.rules.Order == ByAddress {
		return id
	}
	size := a.blocks[id].size
	var ids []blockID
	for at := id; at != noBlock && a.blocks[at].size == size && a.wasRestored(at); at = a.freeAfter(sp, at) {
		if n := len(ids); n == 0 || !a.orderKnown(ids[n-1], at) {
			ids = append(ids, at)
		}
	}
	if expandable { // what can grow is passed over for what cannot, see leastGrowable
		fixed := slices.DeleteFunc(slices.Clone(ids), func(id blockID) bool { return a.growableSize(id) > size })
		if len(fixed) > 0 {
			ids = fixed
		}
	}
	if len(ids) < 2 {
		return id
	}
	return ids[a.askTies(a.ties(ids), false)]
}

// orderTies puts blocks that are about to be released, in the order of their set,
// into the order that ties are given.
func (a *Allocator) orderTies(ids []blockID) {
	if a.askTies == nil || a.rules.Order == ByAddress {
		return
	}
	for i := range ids {
		j := i
		for j < len(ids) && a.wasRestored(ids[j]) && a.blocks[ids[j]].size == a.blocks[ids[i]].size &&
			a.blocks[ids[j]].streamPool == a.blocks[ids[i]].streamPool && (j == i || !a.orderKnown(ids[j-1], ids[j])) {
			j++
		}
		if j-i > 1 {
			n := i + a.askTies(a.ties(ids[i:j]), true)
			id := ids[n]
			copy(ids[i+1:n+1], ids[i:n])
			ids[i] = id
		}
	}
}

func (a *Allocator) ties(ids []blockID) []Tie {
	out := make([]Tie, len(ids))
	for i, id := range ids {
		b := &a.blocks[id]
		out[i] = Tie{Block: b.span(), Object: b.rank >> unitBits}
		if a.rules.Order == BySegment {
			out[i].Object = a.segments[b.seg].base
		}
	}
	return out
}

// wasRestored reports whether the place of a free block comes from a restored state.
func (a *Allocator) wasRestored(id blockID) bool { return a.blocks[id].rank < a.restoredRank }

// orderKnown reports whether two blocks have their order from more than a guess.
func (a *Allocator) orderKnown(x, y blockID) bool {
	return a.rules.Order == BySegment && a.blocks[x].seg == a.blocks[y].seg
}

// restoredOrder puts the restored objects in the order in which they were made.
func (a *Allocator) restoredOrder() {
	switch a.rules.Order {
	case ByCreation:
		if a.startOrder != nil {
			free := a.freeBlocks()
			for _, id := range free {
				a.removeFree(id)
			}
			for id := range a.blocks {
				if b := &a.blocks[id]; b.state != stateNone {
					b.rank = uint64(a.startOrder(b.addr)) << unitBits
					a.created = max(a.created, b.rank)
				}
			}
			a.insertRanked(free)
		}
		a.restoredRank = a.created + MinBlock
	case BySegment:
		if a.startOrder != nil {
			for id := range a.segments {
				if s := &a.segments[id]; s.size != 0 {
					s.place = uint64(a.startOrder(s.base))
				}
			}
			a.placeAnew()
		}
		a.restoredRank = a.placed
	}
}
