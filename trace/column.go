package trace

// chunkLen is the number of values a Column allocates at a time. Growing never
// copies more than the first chunk, so memory peaks at the size of the data.
const (
	chunkBits = 15
	chunkLen  = 1 << chunkBits
	firstLen  = 1 << 6
)

// Column is a growing list of values of one field. As long as all values are
// equal it keeps only their number.
type Column[T comparable] struct {
	n      int
	same   T     // all values, while chunks is nil
	chunks [][]T // each of chunkLen, except that the first one may be the only one and shorter
	unused []T   // what is left of the last chunk
}

// Len returns the number of values.
func (c *Column[T]) Len() int { return c.n }

// At returns value i.
func (c *Column[T]) At(i int) T {
	if c.chunks == nil {
		if uint(i) >= uint(c.n) {
			panic("trace: column index out of range")
		}
		return c.same
	}
	return c.chunks[i>>chunkBits][i&(chunkLen-1)]
}

// Append adds a value.
func (c *Column[T]) Append(v T) {
	if len(c.unused) == 0 {
		c.appendSlowly(v)
		return
	}
	c.unused[0] = v
	c.unused = c.unused[1:]
	c.n++
}

// appendSlowly is Append while all values are equal, and where a chunk begins.
func (c *Column[T]) appendSlowly(v T) {
	if c.chunks == nil {
		if c.n == 0 {
			c.same = v
		}
		if v == c.same {
			c.n++
			return
		}
		c.spread()
	}
	if len(c.unused) == 0 {
		c.reserve()
	}
	c.unused[0] = v
	c.unused = c.unused[1:]
	c.n++
}

// reserve makes room for at least one more value.
func (c *Column[T]) reserve() {
	switch last := len(c.chunks) - 1; {
	case last < 0:
		c.chunks = append(c.chunks, make([]T, firstLen))
	case c.n < chunkLen && c.n == len(c.chunks[0]):
		bigger := make([]T, min(chunkLen, 2*c.n))
		copy(bigger, c.chunks[0])
		c.chunks[0] = bigger
	case c.n>>chunkBits > last:
		c.chunks = append(c.chunks, make([]T, chunkLen))
	}
	c.unused = c.chunks[c.n>>chunkBits][c.n&(chunkLen-1):]
}

// spread goes from one value for all to a value each.
func (c *Column[T]) spread() {
	n := c.n
	c.n, c.chunks = 0, [][]T{}
	for c.n < n {
		c.reserve()
		k := min(len(c.unused), n-c.n)
		for i := range k {
			c.unused[i] = c.same
		}
		c.n += k
		c.unused = c.unused[k:]
	}
}

// Set changes value i.
func (c *Column[T]) Set(i int, v T) {
	if c.At(i) == v {
		return
	}
	if c.chunks == nil {
		c.spread()
	}
	c.chunks[i>>chunkBits][i&(chunkLen-1)] = v
}

// Constant reports whether all values are equal.
func (c *Column[T]) Constant() bool { return c.chunks == nil }

// truncate drops the values from n on.
func (c *Column[T]) truncate(n int) {
	c.n = n
	if c.chunks == nil {
		return
	}
	kept := (n + chunkLen - 1) >> chunkBits
	clear(c.chunks[kept:])
	c.chunks = c.chunks[:kept]
	c.unused = nil
	if n&(chunkLen-1) != 0 {
		c.unused = c.chunks[kept-1][n&(chunkLen-1):]
	}
}
