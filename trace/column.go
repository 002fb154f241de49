package trace

// chunkLen is the number of values a Column allocates at a time. Growing never
// copies, so memory peaks at the size of the data.
const chunkLen = 1 << 15

// Column is a growing list of values of one field. As long as all values are
// equal it keeps only their number.
type Column[T comparable] struct {
	n      int
	same   T     // all values, while chunks is nil
	chunks [][]T // each of chunkLen
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
	return c.chunks[i/chunkLen][i%chunkLen]
}

// Append adds a value.
func (c *Column[T]) Append(v T) {
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
	if c.n/chunkLen == len(c.chunks) {
		c.chunks = append(c.chunks, make([]T, chunkLen))
	}
	c.chunks[c.n/chunkLen][c.n%chunkLen] = v
	c.n++
}

// Set changes value i.
func (c *Column[T]) Set(i int, v T) {
	if c.At(i) == v {
		return
	}
	if c.chunks == nil {
		c.spread()
	}
	c.chunks[i/chunkLen][i%chunkLen] = v
}

// spread goes from one value for all to a value each.
func (c *Column[T]) spread() {
	c.chunks = make([][]T, (c.n+chunkLen)/chunkLen)
	for i := range c.chunks {
		c.chunks[i] = make([]T, chunkLen)
		for j := range c.chunks[i] {
			c.chunks[i][j] = c.same
		}
	}
}

// Constant reports whether all values are equal.
func (c *Column[T]) Constant() bool { return c.chunks == nil }

// truncate drops the values from n on.
func (c *Column[T]) truncate(n int) {
	c.n = n
	if c.chunks != nil {
		clear(c.chunks[(n+chunkLen-1)/chunkLen:])
		c.chunks = c.chunks[:(n+chunkLen-1)/chunkLen]
	}
}
