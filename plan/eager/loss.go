package eager

// LogSoftmax is log_softmax over the last dimension, in fp32 under autocast.
func (m *Machine) LogSoftmax(x *Tensor) *Tensor {
	return m.softmax("LogSoftmax", "log_softmax", x, x.dtype)
}

// Softmax is softmax over the last dimension with a result of type d.
func (m *Machine) Softmax(x *Tensor, d DType) *Tensor { return m.softmax("Softmax", "softmax", x, d) }

func (m *Machine) softmax(name, op string, x *Tensor, d DType) *Tensor {
	in := m.Upper(x)
	defer in.Drop()
	if m.cast.on {
		d = max(d, in.dtype)
	}
	if in.dtype != d && !(in.dtype == Float16 && d == Float32) {
		c := m.To(in, d)
		defer c.Drop()
		in = c
	}
	n := m.node(name+"Backward0", in)
	y := m.Empty(op, d, in.Shape()...)
	if n != nil {
		n.saveOutput(y)
		from := in.dtype
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			n.unpack(0)
			return []*Tensor{m.Empty(op+"_backward", from, g[0].Shape()...)}
		}
		n.made(y)
	}
	return y
}

// NllLoss is the mean negative log likelihood of the targets.
func (m *Machine) NllLoss(logProbs, target *Tensor) *Tensor {
	n := m.node("NllLossBackward0", logProbs)
	n.save(logProbs)
	n.save(target)
	y := m.Empty("nll_loss", logProbs.dtype)
	weight := m.Empty("nll_loss", logProbs.dtype)
	if n != nil {
		n.saveOutput(weight)
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			p := n.unpack(0)
			n.unpack(1)
			n.unpack(2)
			return []*Tensor{m.emptyLike("nll_loss_backward", p, p.dtype)}
		}
		n.made(y)
	}
	weight.Drop()
	return y
}

// CrossEntropy is cross_entropy of logits [rows, classes].
func (m *Machine) CrossEntropy(logits, target *Tensor) *Tensor {
	in := m.Upper(logits)
	p := m.LogSoftmax(in)
	y := m.NllLoss(p, target)
	Drop(p, in)
	return y
}
