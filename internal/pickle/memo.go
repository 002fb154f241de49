package pickle

// memoBits is the size of a chunk of the memo. Chunks are never copied, so the
// memo costs eight bytes for each entry and no peak while it grows.
const (
	memoBits = 15
	memoMask = 1<<memoBits - 1

	maxSparse = 1 << 16
)

// memo is the machine's table of values to be used again. All known writers
// number its entries from 0 on; entries far from the others go into a map, so
// that a file cannot buy a chunk with each opcode.
type memo struct {
	chunks [][]Value
	count  uint // entries in use, and the number that MEMOIZE gives
	sparse map[uint]Value
}

// get returns an entry, or the zero Value.
func (t *memo) get(i uint) Value {
	if c := i >> memoBits; c < uint(len(t.chunks)) {
		return t.chunks[c][i&memoMask]
	}
	return t.sparse[i]
}

// set fills an entry. It reports whether there was room.
func (t *memo) set(i uint, v Value) bool {
	c := i >> memoBits
	if c == uint(len(t.chunks)) && i <= t.count+memoMask {
		t.chunks = append(t.chunks, make([]Value, 1<<memoBits))
		for j, early := range t.sparse {
			if j>>memoBits == c {
				t.chunks[c][j&memoMask] = early
				delete(t.sparse, j)
			}
		}
	}
	if c < uint(len(t.chunks)) {
		entry := &t.chunks[c][i&memoMask]
		if *entry == 0 {
			t.count++
		}
		*entry = v
		return true
	}
	if _, ok := t.sparse[i]; !ok {
		if len(t.sparse) >= maxSparse {
			return false
		}
		t.count++
	}
	if t.sparse == nil {
		t.sparse = map[uint]Value{}
	}
	t.sparse[i] = v
	return true
}
