package pickle

import "math/big"

// chunkBits is the size of a chunk of the side tables.
const (
	chunkBits = 12
	chunkMask = 1<<chunkBits - 1
)

// table is a list that grows without copying.
type table[T any] struct {
	chunks [][]T
	n      int
}

func (t *table[T]) add(v T) int {
	if t.n>>chunkBits == len(t.chunks) {
		t.chunks = append(t.chunks, make([]T, 1<<chunkBits))
	}
	t.chunks[t.n>>chunkBits][t.n&chunkMask] = v
	t.n++
	return t.n - 1
}

func (t *table[T]) get(i int) T { return t.chunks[i>>chunkBits][i&chunkMask] }

// object is a container that the hook did not take.
type object struct {
	chunk, pos uint32 // its items in the arena
	n          uint32
	kind       Kind
	depth      uint16
}

// arena holds the items of all objects, each object's in one piece.
type arena struct {
	chunks [][]Value
	values int
}

const arenaChunk = 1 << 13

func (a *arena) add(items []Value) (chunk, pos uint32) {
	last := len(a.chunks) - 1
	if last < 0 || cap(a.chunks[last])-len(a.chunks[last]) < len(items) {
		a.chunks = append(a.chunks, make([]Value, 0, max(arenaChunk, len(items))))
		last++
	}
	pos = uint32(len(a.chunks[last]))
	a.chunks[last] = append(a.chunks[last], items...)
	a.values += len(items)
	return uint32(last), pos
}

// MakeInt returns the value of a number.
func (m *Machine) MakeInt(n int64) Value {
	if fitsSmall(n) {
		return smallInt(n)
	}
	return m.wide(uint64(n), n < 0)
}

// MakeUint returns the value of a number.
func (m *Machine) MakeUint(n uint64) Value {
	if n < 1<<(tagShift-1) {
		return smallInt(int64(n))
	}
	return m.wide(n, false)
}

func (m *Machine) wide(bits uint64, negative bool) Value {
	p := uint64(m.wides.add(bits)) << 1
	if negative {
		p |= 1
	}
	return tagged(tagWide, p)
}

// MakeBig returns the value of a number of any size.
func (m *Machine) MakeBig(n *big.Int) Value {
	switch {
	case n.IsInt64():
		return m.MakeInt(n.Int64())
	case n.IsUint64():
		return m.MakeUint(n.Uint64())
	}
	return tagged(tagBig, uint64(m.bigs.add(n)))
}

// MakeFloat returns the value of a number.
func (m *Machine) MakeFloat(x float64) Value {
	return tagged(tagFloat, uint64(m.floats.add(x)))
}

// Int returns an integer if it fits 64 bits with sign.
func (m *Machine) Int(v Value) (int64, bool) {
	switch v.tag() {
	case tagInt:
		return v.small(), true
	case tagWide:
		bits := m.wides.get(int(v&payload) >> 1)
		negative := v&1 != 0
		return int64(bits), (int64(bits) < 0) == negative
	}
	return 0, false
}

// Bits returns an integer as 64 bits, those of a negative one in two's
// complement, if it fits either a signed or an unsigned 64-bit number.
func (m *Machine) Bits(v Value) (uint64, bool) {
	switch v.tag() {
	case tagInt:
		return uint64(v.small()), true
	case tagWide:
		return m.wides.get(int(v&payload) >> 1), true
	}
	return 0, false
}

// Big returns an integer of any size.
func (m *Machine) Big(v Value) (*big.Int, bool) {
	switch v.tag() {
	case tagInt:
		return big.NewInt(v.small()), true
	case tagWide:
		bits := m.wides.get(int(v&payload) >> 1)
		if v&1 != 0 {
			return big.NewInt(int64(bits)), true
		}
		return new(big.Int).SetUint64(bits), true
	case tagBig:
		return m.bigs.get(int(v & payload)), true
	}
	return nil, false
}

// Float returns a float.
func (m *Machine) Float(v Value) (float64, bool) {
	if v.tag() != tagFloat {
		return 0, false
	}
	return m.floats.get(int(v & payload)), true
}
