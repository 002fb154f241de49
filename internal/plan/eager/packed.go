package eager

// PackedWeight is a quantised weight as an autograd.Function uses it. Both
// functions run without gradients; what they allocate and free is theirs.
type PackedWeight struct {
	Name    string                              // of the function
	Forward func(x, bias *Tensor) *Tensor       // the product
	Back    func(g *Tensor, in []int64) *Tensor // the gradient of an input of that shape
	// KeepsInput: the function's context holds the input. It is an attribute, not
	// a saved tensor, so a checkpoint does not take it away.
	KeepsInput bool
	// SavesInput: the input is a saved tensor, although nothing needs it.
	SavesInput bool
}

// PackedLinear is x times a quantised weight, which needs no gradient.
func (m *Machine) PackedLinear(x, bias *Tensor, w *PackedWeight) *Tensor {
	n := m.node(w.Name, x)
	switch {
	case n == nil:
	case w.KeepsInput:
		n.saved = append(n.saved, saved{tensor: n.hold(x, false)})
	case w.SavesInput:
		n.save(x)
	}
	off := m.NoGrad(true)
	y := w.Forward(x, bias)
	m.NoGrad(off)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return n.give(w.Back(g[0], n.shape(0)))
		}
		n.made(y)
	}
	return y
}
