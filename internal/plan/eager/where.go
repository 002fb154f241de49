package eager

// Where is torch.where(condition, x, c) with a number c: a tensor of the type
// of x.
func (m *Machine) Where(condition, x *Tensor) *Tensor {
	n := m.node("WhereBackward0", x)
	n.save(condition)
	y := m.where(condition, x)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return []*Tensor{m.where(n.unpack(0), g[0])}
		}
		n.made(y)
	}
	return y
}

// where makes a tensor of the number first, which then takes part.
func (m *Machine) where(condition, x *Tensor) *Tensor {
	c := m.Empty("scalar_tensor", x.dtype)
	y := m.pointwise("where", x.dtype, condition, x)
	c.Drop()
	return y
}

// WhereNumbers is torch.where(condition, a, b) of a scalar tensor on the device
// and a number, both of type d.
func (m *Machine) WhereNumbers(condition *Tensor, d DType) *Tensor {
	a := m.Empty("scalar_tensor", d)
	b := m.Empty("scalar_tensor", d)
	y := m.pointwise("where", d, condition)
	Drop(b, a)
	return y
}
