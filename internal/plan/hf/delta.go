package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// deltaNet is Qwen3_5GatedDeltaNet: linear attention by the gated delta rule,
// in the plain PyTorch that transformers falls back to.
type deltaNet struct {
	label                    ledger.Name
	conv, bias, decay        *eager.Tensor // conv1d.weight, dt_bias, A_log
	norm                     *gatedNorm
	out, qkv, gate, b, a     *linear
	keyWidth, valueWidth     int64
	keyDim, valueDim, groups int64
	act                      string
}

func (b *builder) deltaNet(name string) *deltaNet {
	m, c := b.run.machine, b.run.job.Model
	s, in := c.Linear, b.in(name)
	n := &deltaNet{
		label: b.label(name), act: c.Activation,
		keyDim: int64(s.KeyDim), valueDim: int64(s.ValueDim), groups: int64(s.ValueHeads / s.KeyHeads),
	}
	n.keyWidth, n.valueWidth = n.keyDim*int64(s.KeyHeads), n.valueDim*int64(s.ValueHeads)
	key, value, heads := int(n.keyWidth), int(n.valueWidth), int64(s.ValueHeads)
	first := len(b.run.params)
	n.conv = in.in("conv1d").weight("weight", 2*n.keyWidth+n.valueWidth, 1, int64(s.ConvKernel))
	n.bias = in.weight("dt_bias", heads)
	a := m.Empty("uniform", b.run.dtype, heads)
	n.decay = in.weight("A_log", heads)
	// A module's own parameters are listed before those of its parts.
	list := b.run.params[first:]
	list[0], list[1], list[2] = list[1], list[2], list[0]
	n.norm = in.gatedNorm("norm", s.ValueDim)
	n.out = in.linear("out_proj", value, c.Hidden, false)
	n.qkv = in.linear("in_proj_qkv", c.Hidden, 2*key+value, false)
	n.gate = in.linear("in_proj_z", c.Hidden, value, false)
	n.b = in.linear("in_proj_b", c.Hidden, s.ValueHeads, false)
	n.a = in.linear("in_proj_a", c.Hidden, s.ValueHeads, false)
	a.Drop()
	return n
}

func (n *deltaNet) forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(n.label)
	defer m.Enter(before)
	h := maskPadding(r, x, c.mask)
	batch, rows := h.Size(0), h.Size(1)
	var past *cached
	if c.cache != nil {
		past = &c.cache.layers[c.layer]
	}
	decoding := past != nil && len(past.states) > 0 && rows == 1
	qkv := n.qkv.forward(r, h)
	qkv = replace(qkv, m.Transpose(qkv, 1, 2))
	z := n.gate.forward(r, h)
	z = replace(z, m.Reshape(z, batch, rows, -1, n.valueDim))
	b, a := n.b.forward(r, h), n.a.forward(r, h)
	if decoding {
		qkv = replace(qkv, n.convolveToken(r, qkv, past.states[0]))
	} else {
		qkv = n.convolve(r, qkv, past)
	}
	qkv = replace(qkv, m.Transpose(qkv, 1, 2))
	parts := m.Split(qkv, -1, n.keyWidth, n.keyWidth, n.valueWidth)
	for i, d := range []int64{n.keyDim, n.keyDim, n.valueDim} {
		parts[i] = replace(parts[i], m.Reshape(parts[i], batch, rows, -1, d))
	}
	beta := m.ByResult("sigmoid", b)
	g := n.decays(r, a)
	if n.groups > 1 {
		parts[0] = replace(parts[0], m.RepeatInterleave(parts[0], n.groups, 2))
		parts[1] = replace(parts[1], m.RepeatInterleave(parts[1], n.groups, 2))
	}
	rule := deltaRule{q: parts[0], k: parts[1], v: parts[2], beta: beta, decay: g, final: past != nil}
	if past != nil && len(past.states) > 1 {
		rule.state = past.states[1]
	}
	var core, state *eager.Tensor
	if decoding {
		core, state = rule.token(r)
	} else {
		core, state = rule.chunks(r)
	}
	if past != nil && len(past.states) == 1 {
		past.addState(r, m.Unary("zeros_like", state))
	}
	core = replace(core, m.Reshape(core, -1, n.valueDim))
	z = replace(z, m.Reshape(z, -1, n.valueDim))
	core = replace(core, n.norm.forward(r, core, z))
	core = replace(core, m.Reshape(core, batch, rows, -1))
	y = n.out.forward(r, core)
	eager.Drop(h, qkv, z, b, a)
	eager.Drop(parts...)
	eager.Drop(beta, g, core, state)
	return y, nil
}

// maskPadding is apply_mask_to_padding_states.
func maskPadding(r *run, x, mask *eager.Tensor) *eager.Tensor {
	if mask == nil {
		return x.Keep()
	}
	u := r.machine.Unsqueeze(mask, 2)
	y := r.machine.Mul(x, u)
	u.Drop()
	return y
}

// convolve is causal_conv1d_fn, after the cache took the last rows. It takes x
// over.
func (n *deltaNet) convolve(r *run, x *eager.Tensor, past *cached) *eager.Tensor {
	m := r.machine
	rows, taps := x.Size(2), n.conv.Size(2)
	if past != nil {
		x = replace(x, past.latest(r, x, taps))
	}
	all := x.Size(2)
	in := m.To(x, n.conv.DType())
	out := n.conv1d(r, in, taps-1)
	in.Drop()
	out = replace(out, m.Slice(out, 2, all))
	out = replace(out, activate(r, n.act, out))
	out = replace(out, m.To(out, x.DType()))
	x.Drop()
	if past != nil {
		out = replace(out, m.Narrow(out, 2, rows))
	}
	return out
}

// convolveToken is causal_conv1d_update, which shifts the rows that the cache
// has.
func (n *deltaNet) convolveToken(r *run, x, state *eager.Tensor) *eager.Tensor {
	m := r.machine
	joined := m.Cat(2, state, x)
	joined = replace(joined, m.To(joined, n.conv.DType()))
	out := n.conv1d(r, joined, 0)
	out = replace(out, m.Slice(out, 2, x.Size(2)))
	out = replace(out, activate(r, n.act, out))
	y := m.To(out, x.DType())
	eager.Drop(joined, out)
	return y
}

func (n *deltaNet) conv1d(r *run, x *eager.Tensor, padding int64) *eager.Tensor {
	m := r.machine
	w := m.Squeeze(n.conv, 1)
	u := m.Unsqueeze(w, 1)
	y := m.DepthwiseConv(x, u, padding)
	eager.Drop(u, w)
	return y
}

// latest is LinearAttentionLayer.update_conv_state: what the convolution is to
// see of the rows before and of x.
func (l *cached) latest(r *run, x *eager.Tensor, taps int64) *eager.Tensor {
	m := r.machine
	if len(l.states) > 0 {
		return m.Cat(2, l.states[0], x)
	}
	l.addState(r, m.Empty("zeros", x.DType(), x.Size(0), x.Size(1), taps))
	if x.Size(2) < taps {
		return m.Pad(x, taps)
	}
	return x.Keep()
}

// addState takes a state over: the convolution's first, then the rule's.
func (l *cached) addState(r *run, state *eager.Tensor) {
	if !r.trains {
		state.SetKind(ledger.Cache)
	}
	l.states = append(l.states, state)
}

// decays is g: -A_log.float().exp() * softplus(a.float() + dt_bias).
func (n *deltaNet) decays(r *run, a *eager.Tensor) *eager.Tensor {
	m := r.machine
	rate := m.To(n.decay, eager.Float32)
	rate = replace(rate, m.Exp(rate))
	rate = replace(rate, m.Neg(rate))
	s := m.To(a, eager.Float32)
	s = replace(s, m.Add(s, n.bias))
	s = replace(s, m.Softplus(s))
	g := m.Mul(rate, s)
	eager.Drop(rate, s)
	return g
}

// gatedNorm is Qwen3_5RMSNormGated.
type gatedNorm struct {
	label  ledger.Name
	weight *eager.Tensor
}

func (b *builder) gatedNorm(name string, width int) *gatedNorm {
	return &gatedNorm{label: b.label(name), weight: b.in(name).weight("weight", int64(width))}
}

func (n *gatedNorm) forward(r *run, x, gate *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(n.label)
	defer m.Enter(before)
	h := m.To(x, eager.Float32)
	p := m.Pow(h)
	variance := m.Mean(p)
	p.Drop()
	s := m.AddScalar(variance)
	s = replace(s, m.Rsqrt(s))
	h = rebind(h, m.Mul(h, s), s)
	narrow := m.To(h, x.DType())
	h = rebind(h, m.Mul(n.weight, narrow), narrow)
	wide := m.To(gate, eager.Float32)
	open := m.Activation("silu", wide)
	wide.Drop()
	h = rebind(h, m.Mul(h, open), open)
	y := m.To(h, x.DType())
	eager.Drop(h, variance)
	return y
}

// rebind is replace for a successor made with help of temporaries, which are
// dropped first: an expression's values die before the name is bound.
func rebind(old, successor *eager.Tensor, temporaries ...*eager.Tensor) *eager.Tensor {
	eager.Drop(temporaries...)
	return replace(old, successor)
}
