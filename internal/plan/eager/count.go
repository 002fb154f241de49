package eager

// Total is the sum of all elements of bools or whole numbers: an int64, for
// which others are cast first.
func (m *Machine) Total(x *Tensor) *Tensor {
	y := m.Empty("sum", Int64)
	wide := x.Keep()
	if x.dtype != Int64 {
		wide.Drop()
		wide = m.toCopy(x, Int64)
	}
	m.meet("sum", reduction{outputs: 1, inputs: x.Elements(), inner: true, size: 8, arg: 8})
	wide.Drop()
	return y
}

// All is x.all() of bools.
func (m *Machine) All(x *Tensor) *Tensor {
	y := m.Empty("all", Bool)
	m.meet("all", reduction{outputs: 1, inputs: x.Elements(), inner: true, size: 1, arg: 1})
	return y
}

// meet allocates for a moment what the blocks of a reduction meet in.
func (m *Machine) meet(op string, r reduction) {
	buffer, semaphores := r.scratch(m.Device)
	if buffer == 0 {
		return
	}
	b := m.scratch(buffer, op)
	s := m.scratch(semaphores, op)
	m.unref(s)
	m.unref(b)
}

// CountUp is cumsum: the running sum of bools or whole numbers along the last dimension.
// A single row goes through CUB, which takes a buffer.
func (m *Machine) CountUp(x *Tensor) *Tensor {
	y := m.Empty("cumsum", Int64, x.Shape()...)
	wide := x.Keep()
	if x.dtype != Int64 {
		wide.Drop()
		wide = m.toCopy(x, Int64)
	}
	if n := x.Elements(); n == x.Size(-1) {
		m.Scratch(tileStates(n, sumTile), "cumsum")
	}
	wide.Drop()
	return y
}
