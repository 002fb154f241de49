package policy

// noBlock stands for no block where an index of one is expected.
const noBlock = -1

// state is what a block is.
type state uint8

const (
	unused   state = iota // a record without a block
	free                  // memory that may be handed out
	held                  // handed out
	waiting               // freed, but another stream may still use it
	unmapped              // addresses without memory
	slabbed               // cut into slots
	loose                 // freed, and not merged yet
)

// block is a range of memory. Blocks that lie side by side in one range or region
// know each other.
type block struct {
	addr, size uint64
	asked      uint64 // by the program, while it is held or waiting; async keeps the time of a free here
	prev, next int32  // by address
	turn       uint32 // counts the uses of the record, so that stale handles are noticed
	note       int32  // what the heap wants to know: a slab, a region, a stream
	heap       uint16
	state      state
}

// blocks are the records of an allocator.
type blocks struct {
	all    []block
	spare  int32 // the first record without a block; its next is the one after
	filled int   // records with a block
}

// add makes a block without neighbours.
func (s *blocks) add(heap uint16, addr, size uint64, st state) int32 {
	i := s.spare
	if i == noBlock {
		s.all = append(s.all, block{})
		i = int32(len(s.all) - 1)
	} else {
		s.spare = s.all[i].next
	}
	s.filled++
	b := &s.all[i]
	b.addr, b.size, b.prev, b.next, b.note, b.heap, b.state = addr, size, noBlock, noBlock, 0, heap, st
	return i
}

// drop forgets a block.
func (s *blocks) drop(i int32) {
	b := &s.all[i]
	b.state, b.next = unused, s.spare
	b.turn++
	s.spare = i
	s.filled--
}

// split cuts a block after size bytes. The upper part is a new block in the same
// state.
func (s *blocks) split(i int32, size uint64) int32 {
	b := s.all[i]
	rest := s.add(b.heap, b.addr+size, b.size-size, b.state)
	s.all[i].size, s.all[i].next = size, rest
	r := &s.all[rest]
	r.prev, r.next, r.note = i, b.next, b.note
	if b.next != noBlock {
		s.all[b.next].prev = rest
	}
	return rest
}

// join adds the next block to a block.
func (s *blocks) join(i int32) {
	next := s.all[i].next
	n := s.all[next]
	s.all[i].size += n.size
	s.all[i].next = n.next
	if n.next != noBlock {
		s.all[n.next].prev = i
	}
	s.drop(next)
}

// after puts a block behind another one that has no neighbour there.
func (s *blocks) after(i, next int32) {
	s.all[i].next, s.all[next].prev = next, i
}

// numbers are small numbers for streams, from 1 on.
type numbers struct{ streams []uint64 }

func (n *numbers) number(stream uint64) int32 {
	for i, s := range n.streams {
		if s == stream {
			return int32(i + 1)
		}
	}
	n.streams = append(n.streams, stream)
	return int32(len(n.streams))
}
