package eager

// Ops that send tokens to experts and bring them back.

// TopK is x.topk(k) over the last dimension: the values and where they were.
func (m *Machine) TopK(x *Tensor, k int64) (values, indices *Tensor) {
	n := m.node("TopkBackward0", x)
	shape := append([]int64(nil), x.Shape()...)
	shape[len(shape)-1] = k
	values = m.Empty("topk", x.dtype, shape...)
	indices = m.Empty("topk", Int64, shape...)
	if !x.IsContiguous() {
		m.Scratch(x.Bytes(), "topk")
	}
	m.selected(n, x, values, indices)
	return values, indices
}

// selected makes n the node of values that were picked out of x. Its derivative
// puts gradients where the values were, among zeros.
func (m *Machine) selected(n *Node, x, values, indices *Tensor) {
	if n == nil {
		return
	}
	n.saveOutput(indices)
	from := append([]int64(nil), x.Shape()...)
	n.apply = func(n *Node, g []*Tensor) []*Tensor {
		n.unpack(0)
		return []*Tensor{m.Empty("value_selecting_reduction_backward", g[0].dtype, from...)}
	}
	n.made(values)
}

// Max is x.max(-1).values; keep leaves the dimension with length one.
func (m *Machine) Max(x *Tensor, keep bool) *Tensor {
	n := m.node("MaxBackward0", x)
	shape := append([]int64(nil), x.Shape()...)
	last := len(shape) - 1
	if shape[last] = 1; !keep {
		shape = shape[:last]
	}
	values := m.Empty("max", x.dtype, shape...)
	indices := m.Empty("max", Int64, shape...)
	m.selected(n, x, values, indices)
	indices.Drop()
	return values
}

// smallSort is up to how many elements a sort works in place.
const smallSort = 4096

// Sort sorts a vector of integers: the values and where they were.
func (m *Machine) Sort(x *Tensor) (values, indices *Tensor) {
	const op = "sort"
	count := x.Elements()
	values = m.Empty(op, x.dtype, count)
	indices = m.Empty(op, Int64, count)
	order := m.scratch(count*8, op)
	if count > smallSort {
		m.Scratch(radixScratch(count, x.dtype.Size()*8), op)
	}
	m.unref(order)
	return values, indices
}

// Histogram counts how often each of the integers below bins occurs (histc).
// With one bin the bounds are the same, which makes it look for better ones.
func (m *Machine) Histogram(x *Tensor, bins int64) *Tensor {
	y := m.Empty("histc", x.dtype, bins)
	if bins == 1 {
		m.bounds("histc", x)
	}
	return y
}

// bounds looks for the least and the largest element.
func (m *Machine) bounds(op string, x *Tensor) {
	for range 2 {
		m.reduced(op, x, x.dtype, nil, true).Drop()
	}
}

// Bincount is x.bincount(minlength=bins). It looks for the least and the
// largest integer first.
func (m *Machine) Bincount(x *Tensor, bins int64) *Tensor {
	m.bounds("bincount", x)
	return m.Empty("bincount", Int64, bins)
}

// Cumsum is the running sum of a short vector.
func (m *Machine) Cumsum(x *Tensor) *Tensor {
	y := m.Empty("cumsum", x.dtype, x.Shape()...)
	m.Scratch(scanScratch, "cumsum")
	return y
}

// Index is x[index]: rows of x in the order of a vector of integers.
func (m *Machine) Index(x, index *Tensor) *Tensor {
	n := m.node("IndexBackward0", x)
	n.save(index)
	shape := append(append([]int64(nil), index.Shape()...), x.Shape()[1:]...)
	y := m.Empty("index", x.dtype, shape...)
	if n != nil {
		from, d := append([]int64(nil), x.Shape()...), x.dtype
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			index := n.unpack(0)
			zeros := m.Empty("index_backward", d, from...)
			m.addRows(index.Elements(), zeros, g[0])
			return []*Tensor{zeros}
		}
		n.made(y)
	}
	return y
}

// addRows is index_put with accumulate: the indices are sorted, so that rows
// which meet are added by one warp.
func (m *Machine) addRows(count int64, into, rows *Tensor) {
	const op = "index_put"
	wrapped := m.scratch(count*8, op)
	linear := m.scratch(count*8, op)
	m.unref(wrapped)
	dense := m.Contiguous(rows)
	sorted := m.scratch(count*8, op)
	places := m.scratch(count*8, op)
	order := m.scratch(count*8, op)
	m.Scratch(radixScratch(count, keyBits(into.dim[0]-1)), op)
	m.unref(order)
	m.unref(places)
	m.unref(sorted)
	dense.Drop()
	m.unref(linear)
}

// Gather is x.gather(-1, index).
func (m *Machine) Gather(x, index *Tensor) *Tensor {
	n := m.node("GatherBackward0", x)
	n.save(index)
	n.save(x)
	y := m.Empty("gather", x.dtype, index.Shape()...)
	if n != nil {
		from := append([]int64(nil), x.Shape()...)
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			n.unpack(0)
			n.unpack(1)
			return []*Tensor{m.Empty("gather_backward", g[0].dtype, from...)}
		}
		n.made(y)
	}
	return y
}

// MaskedFill is x.masked_fill(mask, value), a contiguous copy.
func (m *Machine) MaskedFill(x, mask *Tensor) *Tensor {
	n := m.maskedFill(x, mask)
	y := m.Empty("masked_fill", x.dtype, x.Shape()...)
	n.made(y)
	return y
}

// MaskedFillInPlace is x.masked_fill_(mask, value).
func (m *Machine) MaskedFillInPlace(x, mask *Tensor) {
	m.maskedFill(x, mask).rebase(x)
}

func (m *Machine) maskedFill(x, mask *Tensor) *Node {
	n := m.node("MaskedFillBackward0", x)
	n.save(mask)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			n.unpack(0)
			return []*Tensor{m.Empty("masked_fill", g[0].dtype, g[0].Shape()...)}
		}
	}
	return n
}
