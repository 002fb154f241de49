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
	before int   // the number of values that are not in last
	same   T     // all values, while chunks is nil
	chunks [][]T // each of chunkLen, except that the first one may be the only one and shorter
	// The last chunk, and how many of its values are in use: what is written for every
	// value has no pointer, which the garbage collector would want to know of.
	last []T
	used int
}

// Len returns the number of values.
func (c *Column[T]) Len() int { return c.before + c.used }

// At returns value i.
func (c *Column[T]) At(i int) T {
	if c.chunks == nil {
		if uint(i) >= uint(c.before) {
			panic("trace: column index out of range")
		}
		return c.same
	}
	return c.chunks[i>>chunkBits][i&(chunkLen-1)]
}

// Append adds a value.
func (c *Column[T]) Append(v T) {
	if !c.put(v) {
		c.appendSlowly(v)
	}
}

// put is Append where the last chunk has room; it reports whether it had. It is so
// small that the compiler inlines it, which it does not do with Append.
func (c *Column[T]) put(v T) bool {
	n := c.used
	if n >= len(c.last) {
		return false
	}
	c.last[n] = v
	c.used = n + 1
	return true
}

// appendSlowly is Append while all values are equal, and where a chunk begins.
func (c *Column[T]) appendSlowly(v T) {
	if c.chunks == nil {
		if c.before == 0 {
			c.same = v
		}
		if v == c.same {
			c.before++
			return
		}
		c.spread()
	}
	if c.used == len(c.last) {
		c.reserve()
	}
	c.last[c.used] = v
	c.used++
}

// reserve makes room for at least one more value.
func (c *Column[T]) reserve() {
	n := c.Len()
	switch last := len(c.chunks) - 1; {
	case last < 0:
		c.chunks = append(c.chunks, make([]T, firstLen))
	case n < chunkLen && n == len(c.chunks[0]):
		bigger := make([]T, min(chunkLen, 2*n))
		copy(bigger, c.chunks[0])
		c.chunks[0] = bigger
	case n>>chunkBits > last:
		c.chunks = append(c.chunks, make([]T, chunkLen))
	}
	c.resume(n)
}

// resume makes the chunk of value n the last one.
func (c *Column[T]) resume(n int) {
	c.last, c.used = c.chunks[n>>chunkBits], n&(chunkLen-1)
	c.before = n - c.used
}

// spread goes from one value for all to a value each.
func (c *Column[T]) spread() {
	n := c.before
	c.before, c.chunks = 0, [][]T{}
	for c.Len() < n {
		c.reserve()
		k := min(len(c.last)-c.used, n-c.Len())
		for i := range k {
			c.last[c.used+i] = c.same
		}
		c.used += k
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
	if c.chunks == nil {
		c.before = n
		return
	}
	kept := (n + chunkLen - 1) >> chunkBits
	clear(c.chunks[kept:])
	c.chunks = c.chunks[:kept]
	c.before, c.last, c.used = n, nil, 0
	if n&(chunkLen-1) != 0 {
		c.resume(n)
	}
}
