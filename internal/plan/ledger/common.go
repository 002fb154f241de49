package ledger

// Common finds a longest common subsequence of two sequences. It returns for
// every element of a the element of b that it is matched with, or -1.
//
// It is Myers' algorithm in linear space: its time grows with the length times
// the number of differences, and sequences of allocations of one run differ little.
func Common(a, b []int64) []int32 {
	match := make([]int32, len(a))
	for i := range match {
		match[i] = -1
	}
	// What the other side does not have at all cannot be matched. Leaving it
	// out makes sequences that differ much cheap too.
	s := commonSearch{match: match}
	s.a, s.ia = shared(a, b)
	s.b, s.ib = shared(b, a)
	n := len(s.a) + len(s.b) + 3
	s.down, s.up = make([]int32, 2*n), make([]int32, 2*n)
	s.mid = n
	s.find(0, len(s.a), 0, len(s.b))
	return match
}

// shared returns the elements of a that occur in b, and where they are in a.
func shared(a, b []int64) (kept []int64, at []int32) {
	has := make(map[int64]struct{}, len(b))
	for _, x := range b {
		has[x] = struct{}{}
	}
	for i, x := range a {
		if _, ok := has[x]; ok {
			kept, at = append(kept, x), append(at, int32(i))
		}
	}
	return kept, at
}

type commonSearch struct {
	a, b     []int64
	ia, ib   []int32 // where the elements are in the whole sequences
	match    []int32
	down, up []int32 // the furthest reach on each diagonal, from both ends
	mid      int     // index of diagonal 0
}

// find matches a[a0:a1] with b[b0:b1].
func (s *commonSearch) find(a0, a1, b0, b1 int) {
	for {
		for a0 < a1 && b0 < b1 && s.a[a0] == s.b[b0] {
			s.match[s.ia[a0]] = s.ib[b0]
			a0, b0 = a0+1, b0+1
		}
		for a0 < a1 && b0 < b1 && s.a[a1-1] == s.b[b1-1] {
			a1, b1 = a1-1, b1-1
			s.match[s.ia[a1]] = s.ib[b1]
		}
		if a0 == a1 || b0 == b1 {
			return
		}
		x, y := s.split(a0, a1, b0, b1)
		s.find(a0, x, b0, y)
		a0, b0 = x, y
	}
}

// split returns a point that a shortest path of edits goes through. Diagonal k
// holds the points with (x - a0) - (y - b0) = k.
func (s *commonSearch) split(a0, a1, b0, b1 int) (x, y int) {
	n, m := a1-a0, b1-b0
	delta := n - m
	odd := delta&1 != 0
	down, up, mid := s.down, s.up, s.mid
	down[mid+1], up[mid+1] = 0, 0
	for d := 0; ; d++ {
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && down[mid+k-1] < down[mid+k+1] {
				x = int(down[mid+k+1])
			} else {
				x = int(down[mid+k-1]) + 1
			}
			y := x - k
			for x < n && y < m && x >= 0 && y >= 0 && s.a[a0+x] == s.b[b0+y] {
				x, y = x+1, y+1
			}
			down[mid+k] = int32(x)
			if r := delta - k; odd && r >= -(d-1) && r <= d-1 && x+int(up[mid+r]) >= n && inside(x, y, n, m) {
				return a0 + x, b0 + y
			}
		}
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && up[mid+k-1] < up[mid+k+1] {
				x = int(up[mid+k+1])
			} else {
				x = int(up[mid+k-1]) + 1
			}
			y := x - k
			for x < n && y < m && x >= 0 && y >= 0 && s.a[a1-1-x] == s.b[b1-1-y] {
				x, y = x+1, y+1
			}
			up[mid+k] = int32(x)
			if r := delta - k; !odd && r >= -d && r <= d && x+int(down[mid+r]) >= n && inside(x, y, n, m) {
				return a1 - x, b1 - y
			}
		}
	}
}

func inside(x, y, n, m int) bool { return x >= 0 && x <= n && y >= 0 && y <= m }
