package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// rotary computes the tables of rotary positions.
type rotary struct {
	label ledger.Name
	dim   int64
	freq  *eager.Tensor
	style ropeStyle
	wide  bool // the tables stay in fp32 (olmo2)
}

// ropeStyle is what a family's tables look like.
type ropeStyle uint8

const (
	ropeTwice   ropeStyle = iota // each angle twice: for the halves of a head
	ropeOnce                     // each angle once (gpt_oss)
	ropeComplex                  // complex numbers, in the place of the cosines (deepseek_v2)
	ropeGrid                     // of three positions per token (qwen3_5)
)

// tables are the cosines and sines, [1, rows, dim].
type tables struct{ cos, sin *eager.Tensor }

// drop gives up the pair: the elements of a tuple die from the last on.
func (t tables) drop() { eager.Drop(t.sin, t.cos) }

// ropes are the tables of a forward pass. Local are those of sliding layers
// where they have their own.
type ropes struct{ all, local tables }

// forLayer returns the tables for a type of layer.
func (r *ropes) forLayer(t model.LayerType) tables {
	if t == model.SlidingAttention && r.local.cos != nil {
		return r.local
	}
	return r.all
}

func (r *ropes) drop() {
	r.all.drop()
	r.local.drop()
}

// rotary makes the module.
func (b *builder) rotary(name string, dim int) *rotary { return b.rotaries(name, dim, 1)[0] }

// rotaries makes the module with frequencies for some types of layers, and
// initialises it.
func (b *builder) rotaries(name string, dim, types int) []*rotary {
	out, initialise := b.rotaryModule(name, dim, types)
	initialise()
	return out
}

// rotaryModule makes the module alone. What its constructor computes is small
// and comes twice: once there and once when weights are initialised.
func (b *builder) rotaryModule(name string, dim, types int) (out []*rotary, initialise func()) {
	m := b.run.machine
	before := m.Enter(b.label(name))
	defer m.Enter(before)
	frequencies := func() *eager.Tensor { return ropeFrequencies(m, b.run.job.Model.Rope.Type, int64(dim)/2) }
	out = make([]*rotary, types)
	for i := range out {
		ro := &rotary{label: b.label(name), dim: int64(dim)}
		ro.freq = frequencies().SetKind(ledger.Buffer)
		b.run.buffers = append(b.run.buffers, ro.freq, m.Unary("clone", ro.freq).SetKind(ledger.Buffer))
		out[i] = ro
	}
	return out, func() {
		var again *eager.Tensor
		for range out {
			again = replace(again, frequencies())
		}
		again.Drop()
	}
}

// forward computes the tables for positions [1, rows], in the type of x.
func (ro *rotary) forward(r *run, x, positions *eager.Tensor) tables {
	m := r.machine
	before := m.Enter(ro.label)
	defer m.Enter(before)
	grad := m.NoGrad(true)
	defer m.NoGrad(grad)
	if ro.style == ropeGrid {
		return ro.grid(r, x, positions)
	}
	batch, rows := positions.Size(0), positions.Size(1)
	freq := m.Expand(m.View(ro.freq, 1, ro.dim/2, 1), batch, ro.dim/2, 1)
	p := m.View(positions, batch, 1, rows)
	p32 := m.To(p, eager.Float32)
	p.Drop()
	product := m.Bmm(freq, p32)
	f := m.Transpose(product, 1, 2)
	product.Drop()
	if ro.style == ropeComplex {
		polar := m.Polar(f)
		out := tables{cos: m.Unary("mul", polar)}
		eager.Drop(polar, p32, f)
		return out
	}
	var emb *eager.Tensor
	if ro.style == ropeTwice {
		emb = m.Cat(-1, f, f)
	} else {
		emb = f.Keep()
	}
	c := m.Unary("cos", emb)
	cos := m.Unary("mul", c)
	c.Drop()
	s := m.Unary("sin", emb)
	sin := m.Unary("mul", s)
	s.Drop()
	d := x.DType()
	if ro.wide {
		d = eager.Float32
	}
	out := tables{cos: m.To(cos, d), sin: m.To(sin, d)}
	eager.Drop(p32, f, emb, cos, sin)
	return out
}

// rotate is apply_rotary_pos_emb on one of q and k, [batch, heads, rows, dim].
func rotate(r *run, x *eager.Tensor, cos, sin *eager.Tensor) *eager.Tensor {
	m := r.machine
	a := m.Mul(x, cos)
	h := rotateHalf(r, x)
	b := m.Mul(h, sin)
	h.Drop()
	y := m.Add(a, b)
	eager.Drop(a, b)
	return y
}

func rotateHalf(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	half := x.Size(-1) / 2
	x1 := m.Slice(x, -1, half)
	x2 := m.Slice(x, -1, x.Size(-1)-half)
	n := m.Neg(x2)
	y := m.Cat(-1, n, x1)
	eager.Drop(n, x1, x2)
	return y
}

// applyRotary is apply_rotary_pos_emb: rotated copies of q and k.
func applyRotary(r *run, q, k *eager.Tensor, t tables) (*eager.Tensor, *eager.Tensor) {
	cos, sin := r.machine.Unsqueeze(t.cos, 1), r.machine.Unsqueeze(t.sin, 1)
	q2 := rotate(r, q, cos, sin)
	k2 := rotate(r, k, cos, sin)
	eager.Drop(cos, sin)
	return q2, k2
}
