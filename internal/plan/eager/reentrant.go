package eager

// CheckpointReentrant is torch's older checkpoint: the function runs without a
// graph, and the derivative runs it again on a detached argument and then a
// backward pass of its own. args[0] is the argument that needs a gradient.
func (m *Machine) CheckpointReentrant(fn Function, args ...*Tensor) *Tensor {
	x := args[0]
	n := m.node("CheckpointFunctionBackward", x)
	if n == nil {
		return fn(args)
	}
	n.save(x)
	cast := autocast{on: m.cast.on, to: m.cast.to}
	grad := m.NoGrad(true)
	y := fn(args)
	m.NoGrad(grad)
	n.apply = func(n *Node, g []*Tensor) []*Tensor {
		leaf := m.Detached(n.unpack(0), x.dtype)
		again := append([]*Tensor{leaf}, args[1:]...)
		outer := m.cast
		m.cast, m.noGrad = cast, false
		m.RequireGrad(leaf)
		out := fn(again)
		m.clearCast()
		m.cast = outer
		m.noGrad = true
		if out.node != nil {
			m.run(out.node, out.slot, g[0].retain())
		}
		var gx *Tensor
		if leaf.grad != nil {
			gx = m.Detached(leaf.grad, leaf.grad.dtype)
			gx.view = false
		}
		Drop(out, leaf)
		return []*Tensor{gx}
	}
	// The function itself keeps the other arguments until it has run again.
	for _, a := range args[1:] {
		if a != nil {
			n.saved = append(n.saved, saved{tensor: n.hold(a, false)})
		}
	}
	n.made(y)
	return y
}
