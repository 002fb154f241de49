package eager

// RequireGrad is x.requires_grad_() on an activation that has no history, as
// enable_input_require_grads calls it on embeddings: x becomes a leaf. Unlike
// that of a weight, its end of the graph keeps it and its gradient.
func (m *Machine) RequireGrad(x *Tensor) {
	if x.needs || m.noGrad {
		return
	}
	x.needs = true
	x.sink = &Node{machine: m, name: "AccumulateGrad", leaf: x.retain(), owns: true, sequence: last}
}

// SetGrad is t.grad = g. It takes g over; nil is None.
func (t *Tensor) SetGrad(g *Tensor) {
	old := t.grad
	t.grad = nil
	if g != nil {
		t.grad = t.machine.alias(g)
		t.grad.view = g.view
		g.Drop()
	}
	if old != nil {
		old.release()
	}
}

// Freeze is requires_grad_(False) on a weight.
func (t *Tensor) Freeze() { t.needs = false }

// Detached is t.detach().to(dtype): without history, and a copy only if the
// type differs.
func (m *Machine) Detached(t *Tensor, d DType) *Tensor {
	if t.dtype != d {
		return m.toCopy(t, d)
	}
	return m.aliasOf(t, t.Shape(), t.stride)
}

// OnGrad has f called whenever a gradient was added to that of t.
func (t *Tensor) OnGrad(f func()) {
	if t.sink != nil {
		t.sink.hook = f
	}
}

// ViewInto is a view of a part of a flat buffer that looks like t.
func (m *Machine) ViewInto(buffer, t *Tensor) *Tensor {
	return m.aliasOf(buffer, t.Shape(), t.stride)
}

// Arrive is the end of a backward pass at a leaf: g becomes its gradient, which
// takes it over, and who waits for it is called.
func (t *Tensor) Arrive(g *Tensor) {
	t.SetGrad(g)
	if t.sink != nil && t.sink.hook != nil {
		t.sink.hook()
	}
}
