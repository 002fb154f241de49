package eager

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

// CrossEntropy is cross_entropy of logits [rows, classes]. It asks for a softmax
// in the type of the logits, so that autocast only widens its result. Within
// WithoutLoss it is a number that nothing was computed for.
func (m *Machine) CrossEntropy(logits, target *Tensor) *Tensor {
	if m.noLoss {
		return m.MetaParameter(Float32, false)
	}
	var p *Tensor
	m.AutocastOff(func() { p = m.LogSoftmax(logits) })
	in := m.Upper(p)
	y := m.NllLoss(in, target)
	Drop(in, p)
	return y
}

// WithoutLoss runs fn as a model runs that gets no labels.
func (m *Machine) WithoutLoss(fn func()) {
	m.noLoss = true
	fn()
	m.noLoss = false
}
