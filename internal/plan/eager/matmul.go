package eager

// mm is the product of two matrices.
func (m *Machine) mm(a, b *Tensor) *Tensor {
	n := m.node("MmBackward0", a, b)
	if n != nil {
		n.saveIf(0, b)
		n.saveIf(1, a)
	}
	y := m.product("mm", a, b, (*Machine).Handle)
	if n != nil {
		n.byColumns = [2]bool{columns(a), columns(b)}
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			out := n.give(nil, nil)
			b, a := n.unpack(0), n.unpack(1)
			if n.wants(1) {
				out[1] = n.machine.matGrad(a, g[0], true, n.byColumns[1])
			}
			if n.wants(0) {
				out[0] = n.machine.matGrad(g[0], b, false, n.byColumns[0])
			}
			return out
		}
		n.made(y)
	}
	return y
}

// product is the result of a·b, made by an op that takes a handle of a library.
func (m *Machine) product(op string, a, b *Tensor, handle func(*Machine)) *Tensor {
	return m.cachedProduct(func() *Tensor {
		y := m.Empty(op, a.dtype, a.dim[0], b.dim[1])
		handle(m)
		return y
	})
}

// columns reports whether a matrix lies in memory column by column.
func columns(t *Tensor) bool {
	return t.stride[t.dims-2] == 1 && t.stride[t.dims-1] == t.dim[t.dims-2]
}

// matGrad is the gradient of a matrix of a product: a'·g for the second one
// (left), g·b' for the first. It lies in memory as the matrix does.
func (m *Machine) matGrad(a, b *Tensor, left, byColumns bool) *Tensor {
	defer m.Handle()
	rows, cols := a.dim[0], b.dim[1]
	if left {
		rows = a.dim[1]
	} else {
		cols = b.dim[0]
	}
	if !byColumns {
		return m.Empty("mm", a.dtype, rows, cols)
	}
	t := m.Empty("mm", a.dtype, cols, rows)
	y := m.Transpose(t, 0, 1)
	t.Drop()
	return y
}

// Linear is x·w' + bias: bias may be nil.
func (m *Machine) Linear(x, w, bias *Tensor) *Tensor {
	if m.cast.on {
		b := m.Lower(bias)
		w := m.Lower(w)
		x := m.Lower(x)
		y := m.linear(x, w, b)
		Drop(x, w, b)
		return y
	}
	return m.linear(x, w, bias)
}

func (m *Machine) linear(x, w, bias *Tensor) *Tensor {
	t := m.Transpose(w, 0, 1)
	defer t.Drop()
	flat := x
	full := x.dim
	full[x.dims-1] = w.dim[0]
	shape := full[:x.dims]
	if x.dims != 2 {
		flat = m.Reshape(x, -1, x.Size(-1))
		defer flat.Drop()
	}
	var y *Tensor
	if bias != nil {
		y = m.addmm(bias, flat, t)
	} else {
		y = m.mm(flat, t)
	}
	if x.dims == 2 {
		return y
	}
	var v *Tensor
	if bias != nil {
		v = m.View(y, shape...)
	} else {
		v = m.unsafeView(y, shape...)
	}
	y.Drop()
	return v
}

// Conv1D is bias + x·w for w [in, out], as transformers' Conv1D computes it.
func (m *Machine) Conv1D(x, w, bias *Tensor) *Tensor {
	full := x.dim
	full[x.dims-1] = w.dim[1]
	shape := full[:x.dims]
	flat := m.View(x, -1, x.Size(-1))
	w = m.Lower(w)
	in := m.Lower(flat)
	bias = m.Lower(bias)
	p := m.addmm(bias, in, w)
	Drop(bias, in, w, flat)
	y := m.View(p, shape...)
	p.Drop()
	return y
}

// addmm is bias + a·b.
func (m *Machine) addmm(bias, a, b *Tensor) *Tensor {
	n := m.node("AddmmBackward0", bias, a, b)
	if n != nil {
		n.saveIf(2, a)
		n.saveIf(1, b)
	}
	y := m.product("addmm", a, b, (*Machine).handleLt)
	if n != nil {
		n.byColumns = [2]bool{columns(a), columns(b)}
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			out := n.give(nil, nil, nil)
			a, b := n.unpack(0), n.unpack(1)
			if n.wants(1) {
				out[1] = n.machine.matGrad(g[0], b, false, n.byColumns[0])
			}
			if n.wants(2) {
				out[2] = n.machine.matGrad(a, g[0], true, n.byColumns[1])
			}
			out[0] = n.passed(0, g[0])
			return out
		}
		n.made(y)
	}
	return y
}

// Bmm is the product of two stacks of matrices.
func (m *Machine) Bmm(a, b *Tensor) *Tensor {
	n := m.node("BmmBackward0", a, b)
	if n != nil {
		n.saveIf(0, b)
		n.saveIf(1, a)
	}
	y := m.Empty("bmm", a.dtype, a.dim[0], a.dim[1], b.dim[2])
	m.Handle()
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			m, out := n.machine, n.give(nil, nil)
			b, a := n.unpack(0), n.unpack(1)
			if n.wants(1) {
				t := m.Transpose(a, 1, 2)
				out[1] = m.Bmm(t, g[0])
				t.Drop()
			}
			if n.wants(0) {
				t := m.Transpose(b, 1, 2)
				out[0] = m.Bmm(g[0], t)
				t.Drop()
			}
			return out
		}
		n.made(y)
	}
	return y
}

// opCache holds the results that a selective checkpoint keeps: matrix products
// and attention.
type opCache struct {
	replay bool
	kept   [][]*Tensor
	next   int
}

// cachedOp runs an op, or takes its results from the cache when it is run
// again under a selective checkpoint.
func (m *Machine) cachedOp(run func() []*Tensor) []*Tensor {
	c := m.cached
	if c == nil {
		return run()
	}
	if c.replay && c.next < len(c.kept) {
		out := make([]*Tensor, len(c.kept[c.next]))
		for i, k := range c.kept[c.next] {
			t := m.tensor(k.dtype, k.Shape())
			t.stride, t.store = k.stride, k.store
			t.store.refs++
			out[i] = t
			k.release()
		}
		c.kept[c.next] = nil
		c.next++
		return out
	}
	out := run()
	if !c.replay {
		keep := make([]*Tensor, len(out))
		for i, t := range out {
			(&Node{machine: m}).mark(t)
			keep[i] = m.alias(t)
		}
		c.kept = append(c.kept, keep)
	}
	return out
}

// cachedProduct is cachedOp for an op with one result.
func (m *Machine) cachedProduct(run func() *Tensor) *Tensor {
	if m.cached == nil {
		return run()
	}
	return m.cachedOp(func() []*Tensor { return []*Tensor{run()} })[0]
}

func (c *opCache) drop() {
	for _, k := range c.kept[c.next:] {
		for _, t := range k {
			t.release()
		}
	}
	c.kept = nil
}

// CheckpointSelective is Checkpoint with the results of matrix products and of
// attention kept.
func (m *Machine) CheckpointSelective(fn Function, args ...*Tensor) *Tensor {
	return m.checkpoint(fn, &opCache{}, args)
}
