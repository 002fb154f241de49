package sim

// maxTree is a growing row of numbers, 0 at first, that finds the first or the
// last one of at least some size in logarithmic time. v[1] is the root, the
// children of v[i] are v[2i] and v[2i+1], the leaves are the upper half.
type maxTree struct{ v []uint64 }

func (t *maxTree) leaves() int { return len(t.v) / 2 }

func (t *maxTree) set(i int, x uint64) {
	if i >= t.leaves() {
		t.grow(i)
	}
	i += t.leaves()
	t.v[i] = x
	for i /= 2; i > 0; i /= 2 {
		t.v[i] = max(t.v[2*i], t.v[2*i+1])
	}
}

// at returns number i, which was set.
func (t *maxTree) at(i int) uint64 { return t.v[t.leaves()+i] }

// grow makes room for number i.
func (t *maxTree) grow(i int) {
	n := max(64, t.leaves())
	for n <= i {
		n *= 2
	}
	v := make([]uint64, 2*n)
	copy(v[n:], t.v[t.leaves():])
	for i := n - 1; i > 0; i-- {
		v[i] = max(v[2*i], v[2*i+1])
	}
	t.v = v
}

// first returns the lowest i with a number of at least x > 0, or -1.
func (t *maxTree) first(x uint64) int { return t.find(x, 0) }

// last returns the highest i with a number of at least x > 0, or -1.
func (t *maxTree) last(x uint64) int { return t.find(x, 1) }

// find descends to the child on the given side wherever that is possible.
func (t *maxTree) find(x uint64, side int) int {
	if len(t.v) == 0 || t.v[1] < x {
		return -1
	}
	i := 1
	for i < t.leaves() {
		if i = 2*i + side; t.v[i] < x {
			i ^= 1
		}
	}
	return i - t.leaves()
}

// clear sets every number to 0.
func (t *maxTree) clear() { clear(t.v) }
