package alloc

import "math/bits"

// freeSet is the ordered set of the free blocks of one pool and one stream:
// by size, then by rank, which is the address in most releases of PyTorch
// (spec 2.1, FreeOrder). Both count in units of MinBlock. It answers "the smallest block of at
// least this size, the first of those" in a few instructions.
//
// Sizes fall into ordered classes: one class for each size below 2 MiB, then
// 64 classes for each power of two, and from 1 TiB on classes 8 GiB wide. A
// bitmap of two levels finds the next class with a block in it. A class keeps
// its smallest block inline; only a class with several has a tree for the rest.
type freeSet struct {
	forest  *forest
	summary [classWords/64 + 1]uint64 // which words are not zero
	words   [classWords]uint64        // which classes are not empty
	pages   [classWords]*[64]class
}

// class is the content of one size class.
type class struct {
	key  uint64  // of the smallest block
	id   blockID // the smallest block
	rest uint32  // tree of the others
}

// A key orders the blocks of a class: the size above the class's lower bound in
// the upper 24 bits, the rank in the lower 40.
const (
	unitBits   = 9
	exactUnits = 1 << 12 // sizes below this many units have a class each
	wideUnits  = 1 << 31 // sizes from this many units on share classes of 2^24 units
	maxUnits   = 1 << 37
	stepBits   = 6 // 64 classes for each power of two in between
	offsetBits = 24
	rankBits   = 40

	stepped    = exactUnits + (31-12)<<stepBits
	classCount = stepped + (maxUnits-wideUnits)>>offsetBits
	classWords = (classCount + 63) / 64
)

// Limits of what the keys can represent; segments beyond them are refused
// when the driver hands them out.
const (
	maxAddress   = uint64(1) << (rankBits + unitBits)
	maxBlockSize = uint64(maxUnits) << unitBits
)

// locate gives the class of a size, and the part of the key that the size decides.
func locate(size uint64) (c uint, high uint64) {
	u := size >> unitBits
	switch {
	case u < exactUnits:
		return uint(u), 0
	case u < wideUnits:
		k := uint(bits.Len64(u) - 1)
		width := k - stepBits
		return uint(exactUnits + (k-12)<<stepBits + uint(u>>width)&(1<<stepBits-1)), (u & (1<<width - 1)) << rankBits
	default:
		return uint(stepped + (u-wideUnits)>>offsetBits), (u & (1<<offsetBits - 1)) << rankBits
	}
}

// insert adds a block that is not in the set.
func (s *freeSet) insert(size, rank uint64, id blockID) {
	c, high := locate(size)
	key := high | rank>>unitBits
	w := c / 64
	page := s.pages[w]
	if page == nil {
		page = new([64]class)
		s.pages[w] = page
	}
	e := &page[c%64]
	word := s.words[w]
	if word>>(c%64)&1 == 0 {
		s.words[w] = word | 1<<(c%64)
		s.summary[w/64] |= 1 << (w % 64)
		e.key, e.id = key, id
		return
	}
	if key < e.key {
		e.key, key = key, e.key
		e.id, id = id, e.id
	}
	e.rest = s.forest.insert(e.rest, key, id)
}

// remove deletes a block that is in the set.
func (s *freeSet) remove(size, rank uint64) {
	c, high := locate(size)
	key := high | rank>>unitBits
	if e := &s.pages[c/64][c%64]; e.key == key {
		s.removeFirst(c)
	} else {
		e.rest = s.forest.remove(e.rest, key)
	}
}

// removeFirst deletes the smallest block of a class.
func (s *freeSet) removeFirst(c uint) {
	w := c / 64
	e := &s.pages[w][c%64]
	if e.rest != 0 {
		e.key, e.id = s.forest.first(e.rest)
		e.rest = s.forest.remove(e.rest, e.key)
		return
	}
	if s.words[w] &^= 1 << (c % 64); s.words[w] == 0 {
		s.summary[w/64] &^= 1 << (w % 64)
	}
}

// ceil returns the first block of at least size bytes.
func (s *freeSet) ceil(size uint64) blockID {
	if size >= maxBlockSize {
		return noBlock
	}
	c, high := locate(size)
	return s.from(c, high)
}

// after returns the block that follows the given one in the set's order.
func (s *freeSet) after(size, rank uint64) blockID {
	c, high := locate(size)
	return s.from(c, (high|rank>>unitBits)+1)
}

// from returns the first block of class c with at least the given key, or
// else the smallest block of a higher class.
func (s *freeSet) from(c uint, key uint64) blockID {
	w := c / 64
	word := s.words[w] >> (c % 64)
	if word&1 != 0 {
		e := &s.pages[w][c%64]
		if e.key >= key {
			return e.id
		}
		if id := s.forest.ceil(e.rest, key); id != noBlock {
			return id
		}
		word &^= 1
	}
	if word != 0 {
		c += uint(bits.TrailingZeros64(word))
		return s.pages[w][c%64].id
	}
	w++
	v := w / 64
	if v >= uint(len(s.summary)) {
		return noBlock
	}
	sum := s.summary[v] >> (w % 64) << (w % 64)
	for sum == 0 {
		if v++; v == uint(len(s.summary)) {
			return noBlock
		}
		sum = s.summary[v]
	}
	w = v*64 + uint(bits.TrailingZeros64(sum))
	return s.pages[w][bits.TrailingZeros64(s.words[w])].id
}

// before returns the last block that is ordered before (size, rank).
func (s *freeSet) before(size, rank uint64) blockID {
	c, high := uint(classCount-1), padKey
	if size < maxBlockSize {
		c, high = locate(size)
		high |= rank >> unitBits
	}
	w := c / 64
	word := s.words[w] & (2<<(c%64) - 1)
	if word>>(c%64)&1 != 0 {
		e := &s.pages[w][c%64]
		if id := s.forest.below(e.rest, high); id != noBlock {
			return id
		}
		if e.key < high {
			return e.id
		}
		word &^= 1 << (c % 64)
	}
	for word == 0 {
		if w == 0 {
			return noBlock
		}
		w--
		word = s.words[w]
	}
	e := &s.pages[w][bits.Len64(word)-1]
	if e.rest != 0 {
		return s.forest.last(e.rest)
	}
	return e.id
}

// appendAll appends the blocks of the set in order.
func (s *freeSet) appendAll(ids []blockID) []blockID {
	for v, sum := range s.summary {
		for ; sum != 0; sum &= sum - 1 {
			w := v*64 + bits.TrailingZeros64(sum)
			for word := s.words[w]; word != 0; word &= word - 1 {
				e := &s.pages[w][bits.TrailingZeros64(word)]
				ids = append(ids, e.id)
				s.forest.each(e.rest, func(id blockID) { ids = append(ids, id) })
			}
		}
	}
	return ids
}
