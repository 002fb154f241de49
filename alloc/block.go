package alloc

// Blocks are records in one slice and name each other by index, so that the
// garbage collector has nothing to follow and a record fills one cache line.

// blockID is a block's index in Allocator.blocks; 0 names no block.
type blockID uint32

const noBlock blockID = 0

// blockState says which of the states of spec 0.1 a block is in.
type blockState uint8

const (
	stateNone      blockState = iota // record not in use
	stateFree                        // in its stream pool's free set
	stateAllocated                   // handed out, in the address table
	statePending                     // freed, but other streams may still use it
	stateUnmapped                    // addresses without memory, in its stream pool's unmapped list
	stateWithheld                    // free, but not on the device: in its stream pool's withheld list
)

// block is a contiguous piece of a segment. The blocks of a segment tile it
// and are linked in address order.
type block struct {
	addr, size uint64
	requested  uint64 // bytes asked for at the last hand-out; stale in a free block
	rank       uint64 // place among the free blocks of its size, see Allocator.ranked
	prev, next blockID
	streamPool streamPoolID
	seg        segmentID
	events     uint32 // outstanding events on other streams
	uses       usesID // streams recorded on the block
	entered    uint32 // the pool's search counter when the block entered the free set; of one in use, Allocator.served when it was handed out
	state      blockState
	expandable bool
	elsewhere  bool // in use, and not all of it is on the device
}

// split reports whether the block has a neighbour in its segment.
func (b *block) split() bool { return b.prev|b.next != 0 }

// newBlock takes a record, which the caller fills; its rank is a.created. It may
// move the records: no pointer into a.blocks is valid across the call.
func (a *Allocator) newBlock() blockID {
	a.created += MinBlock
	if id := a.spare; id != noBlock {
		a.spare = a.blocks[id].next
		return id
	}
	a.blocks = append(a.blocks, block{})
	return blockID(len(a.blocks) - 1)
}

func (a *Allocator) dropBlock(id blockID) {
	b := &a.blocks[id]
	b.state, b.next = stateNone, a.spare
	a.spare = id
}

// linkAfter puts the block with the given id right of left.
func (a *Allocator) linkAfter(left, id blockID) {
	b, l := &a.blocks[id], &a.blocks[left]
	b.prev, b.next = left, l.next
	if l.next != noBlock {
		a.blocks[l.next].prev = id
	}
	l.next = id
}

// linkBefore puts the block with the given id left of right.
func (a *Allocator) linkBefore(right, id blockID) {
	b, r := &a.blocks[id], &a.blocks[right]
	b.prev, b.next = r.prev, right
	if r.prev != noBlock {
		a.blocks[r.prev].next = id
	} else {
		a.segments[r.seg].head = id
	}
	r.prev = id
}

// absorb merges a neighbour into the block, which survives, and drops the
// neighbour's record. The neighbour must be in no set any more.
func (a *Allocator) absorb(id, neighbour blockID) {
	b, n := &a.blocks[id], &a.blocks[neighbour]
	if b.prev == neighbour {
		b.addr = n.addr
		b.prev = n.prev
		if n.prev != noBlock {
			a.blocks[n.prev].next = id
		} else {
			a.segments[b.seg].head = id
		}
	} else {
		b.next = n.next
		if n.next != noBlock {
			a.blocks[n.next].prev = id
		}
	}
	b.size += n.size
	a.dropBlock(neighbour)
}
