package snapshot

// rows is a table that grows without copying, from small chunks to large ones.
type rows[T any] struct {
	chunks [][]T
	starts []int // row number of each chunk's first
	n      int
	given  int // rows that have found their place
}

func (r *rows[T]) add(v T) int {
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last]) == cap(r.chunks[last]) {
		size := 16 << min(len(r.chunks), 8)
		r.chunks = append(r.chunks, make([]T, 0, size))
		r.starts = append(r.starts, r.n)
		last++
	}
	r.chunks[last] = append(r.chunks[last], v)
	r.n++
	return r.n - 1
}

// chunk returns the number of the chunk that holds row i.
func (r *rows[T]) chunk(i int) int {
	lo, hi := 0, len(r.starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; r.starts[mid] <= i {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func (r *rows[T]) row(i int) *T {
	c := r.chunk(i)
	return &r.chunks[c][i-r.starts[c]]
}

// slice returns n rows from first on. They are shared with the table if they
// lie in one chunk, otherwise copied.
func (r *rows[T]) slice(first, n int) []T {
	c := r.chunk(first)
	at := first - r.starts[c]
	if at+n <= len(r.chunks[c]) {
		return r.chunks[c][at : at+n : at+n]
	}
	out := make([]T, 0, n)
	for i := range n {
		out = append(out, *r.row(first + i))
	}
	return out
}
