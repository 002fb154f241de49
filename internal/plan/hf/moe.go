package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// experts is a layer's experts, whose weights are stacked, as
// grouped_mm_experts_forward runs them: the tokens are sorted by expert, and
// one product does for all experts what a Linear does for one. What it
// allocates does not depend on how tokens spread over the experts.
type experts struct {
	label        ledger.Name
	gateUp, down *eager.Tensor // [experts, out, in], transposed: [experts, in, out]
	// Biases are added per token; nil without.
	gateUpBias, downBias *eager.Tensor
	transposed           bool
	packed               bool // the weights are quantised
	count                int64
	gate                 func(r *run, x *eager.Tensor) *eager.Tensor
}

// experts makes the stacked weights of experts of an intermediate width.
func (b *builder) experts(name string) *experts {
	c := b.run.job.Model
	in := b.in(name)
	e := &experts{label: b.label(name), count: b.run.localExperts()}
	hidden, width := b.aligned(c.Hidden), b.aligned(c.MoE.Intermediate)
	e.packed = in.packsExperts()
	e.gateUp = in.stack("gate_up_proj", e.count, 2*width, hidden)
	e.down = in.stack("down_proj", e.count, hidden, width)
	e.gate = func(r *run, x *eager.Tensor) *eager.Tensor { return gateHalves(r, x, c.Activation) }
	return e
}

// aligned is a width of the experts' matrices. Torch's grouped product refuses
// those whose rows are not a multiple of 16 bytes.
func (b *builder) aligned(width int) int64 {
	if bytes := int64(width) * b.run.dtype.Size(); bytes%16 != 0 {
		b.run.fail(fmt.Errorf("experts with rows of %d elements cannot run: grouped_mm needs rows of a multiple of 16 bytes, and these have %d", width, bytes))
	}
	return int64(width)
}

// forward runs tokens x [tokens, hidden] through the experts that indices
// [tokens, k] names, weighted with weights.
func (e *experts) forward(r *run, x, indices, weights *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(e.label)
	defer m.Enter(before)
	if r.decodes && !e.packed {
		return e.batched(r, x, indices, weights)
	}
	tokens, k, hidden := x.Size(0), indices.Size(-1), x.Size(-1)
	sample := m.Reshape(weights, -1)
	ids := m.Reshape(indices, -1)
	sorted, perm := m.Sort(ids)
	token := m.Unary("floor_divide", perm)
	selected := m.Index(x, token)
	token.Drop()
	share := m.Index(sample, perm)
	narrow := m.To(sorted, eager.Int32)
	counts := m.Histogram(narrow, e.count)
	offsets := m.Cumsum(counts)
	beyond := m.Compare("ge", sorted)
	sentinel := m.Unsqueeze(beyond, -1)
	beyond.Drop()
	bias := e.biasOf(r, e.gateUpBias, sorted)
	m.MaskedFillInPlace(selected, sentinel)
	selected = r.exchange(selected)
	out := e.linear(r, selected, e.gateUp, bias, offsets)
	out = replace(out, m.MaskedFill(out, sentinel))
	out = replace(out, e.gate(r, out))
	downBias := e.biasOf(r, e.downBias, sorted)
	bias.Drop()
	bias = downBias
	out = replace(out, e.linear(r, out, e.down, bias, offsets))
	out = replace(out, m.MaskedFill(out, sentinel))
	out = r.exchange(out)
	column := m.Unsqueeze(share, -1)
	weighted := m.Mul(out, column)
	column.Drop()
	inverse := m.Unary("empty_like", perm)
	m.Unary("arange", perm).Drop()
	weighted = replace(weighted, m.Index(weighted, inverse))
	apart := m.View(weighted, tokens, k, hidden)
	sum := m.Sum(apart, 1, false)
	apart.Drop()
	y := m.To(sum, x.DType())
	eager.Drop(sample, ids, sorted, perm, selected, share, narrow, counts, offsets, sentinel, bias, out, weighted, inverse, sum)
	return y
}

// replace binds a name anew: old is dropped once its successor is there.
func replace(old, successor *eager.Tensor) *eager.Tensor {
	old.Drop()
	return successor
}

// biasOf is the bias of every token's expert, nil without biases.
func (e *experts) biasOf(r *run, bias, ids *eager.Tensor) *eager.Tensor {
	if bias == nil {
		return nil
	}
	return r.machine.Index(bias, ids)
}

// linear is _grouped_linear.
func (e *experts) linear(r *run, x, w, bias, offsets *eager.Tensor) *eager.Tensor {
	m := r.machine
	if e.transposed {
		w = w.Keep()
	} else {
		w = m.Transpose(w, -2, -1)
	}
	in := m.To(x, w.DType())
	var quantised, scales *eager.Tensor
	if e.packed && r.job.Quant.Method == model.FP8 {
		quantised, scales = r.quantiseInput(in)
	}
	y := m.GroupedMM(in, w, offsets)
	eager.Drop(quantised, scales, in, w)
	if bias != nil {
		m.AddInPlace(y, bias)
	}
	return y
}

// gateHalves is _default_apply_gate: the first half, activated, times the second.
func gateHalves(r *run, x *eager.Tensor, act string) *eager.Tensor {
	half := x.Size(-1) / 2
	parts := r.machine.Split(x, -1, half, half)
	a := activate(r, act, parts[0])
	y := r.machine.Mul(a, parts[1])
	eager.Drop(a, parts[0], parts[1])
	return y
}

// router chooses experts: the logits, which the caller only drops, the weights
// of the chosen experts and which they are.
type router interface {
	forward(r *run, x *eager.Tensor) (logits, weights, indices *eager.Tensor)
}

// softmaxRouter is the router of mixtral and qwen3_moe.
type softmaxRouter struct {
	label  ledger.Name
	weight *eager.Tensor
	topK   int64
	norm   bool // the weights of the chosen experts are made to add up to one
	wide   bool // mixtral: softmax of a copy in fp32, and the weights stay so
}

func (b *builder) softmaxRouter(name string) *softmaxRouter {
	c := b.run.job.Model
	return &softmaxRouter{
		label: b.label(name), weight: b.in(name).weight("weight", int64(c.MoE.Experts), int64(c.Hidden)),
		topK: int64(c.MoE.TopK), norm: c.MoE.NormTopK, wide: c.Family == "mixtral",
	}
}

func (g *softmaxRouter) forward(r *run, x *eager.Tensor) (logits, weights, indices *eager.Tensor) {
	m := r.machine
	before := m.Enter(g.label)
	defer m.Enter(before)
	logits = m.Linear(x, g.weight, nil)
	in := logits.Keep()
	if g.wide {
		in = replace(in, m.To(in, eager.Float32))
	}
	probs := m.Softmax(in, eager.Float32)
	in.Drop()
	weights, indices = m.TopK(probs, g.topK)
	if g.norm {
		sum := m.Sum(weights, -1, true)
		m.DivInPlace(weights, sum)
		sum.Drop()
	}
	if !g.wide {
		weights = replace(weights, m.To(weights, logits.DType()))
	}
	probs.Drop()
	return logits, weights, indices
}

// sparseBlock is a router and its experts (mixtral, qwen3_moe, gpt_oss).
type sparseBlock struct {
	label   ledger.Name
	jitter  bool // the input is multiplied by noise in training
	gate    router
	experts *experts
}

// feedForward is what comes after attention in a layer: experts or an MLP.
func (b *builder) feedForward(name string, layer int) feedForward {
	c := b.run.job.Model
	if !c.Sparse(layer) {
		return b.gatedMLP(name, c.Hidden, c.Intermediate, c.MLPBias, c.Activation)
	}
	switch {
	case c.MLA != nil:
		return b.sharedBlock(name)
	case c.MoE.SharedIntermediate > 0:
		return b.gatedShare(name)
	}
	in := b.in(name)
	s := &sparseBlock{label: b.label(name), jitter: c.MoE.JitterNoise}
	switch c.Family {
	case "mixtral":
		s.gate = in.softmaxRouter("gate")
		s.experts = in.experts("experts")
	case "gpt_oss":
		s.gate = in.biasedRouter("router")
		s.experts = in.biasedExperts("experts")
		return &scoredBlock{s}
	default:
		s.experts = in.experts("experts")
		s.gate = in.softmaxRouter("gate")
	}
	return s
}

func (s *sparseBlock) forward(r *run, x *eager.Tensor) *eager.Tensor {
	y, _ := s.run(r, x, false)
	return y
}

// run is the output and, if they are to be kept, the weights of the experts.
func (s *sparseBlock) run(r *run, x *eager.Tensor, keep bool) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(s.label)
	defer m.Enter(before)
	if s.jitter && r.trains {
		noise := m.Unary("uniform", x)
		m.MulInPlace(x, noise)
		noise.Drop()
	}
	flat := m.View(x, -1, x.Size(-1))
	logits, weights, indices := s.gate.forward(r, flat)
	r.route(logits)
	h := s.experts.forward(r, flat, indices, weights)
	y = m.Reshape(h, x.Shape()...)
	eager.Drop(h, logits)
	if !keep {
		weights.Drop()
		weights = nil
	}
	eager.Drop(indices, flat)
	return y, weights
}
