package serve

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

// network is one rank's part of a model as vLLM builds it: projections of the
// same input joined, heads and widths divided among the ranks.
type network struct {
	*eager.Machine
	request *Request
	model   *model.Model
	dtype   eager.DType
	ranks   int64
	layer   int // that is being built
}

func newNetwork(r *Request) *network {
	d := eager.H200
	d.BlasWorkspace, d.Capability = int64(r.Card.WorkspaceBytes()), 10*r.Card.Major+r.Card.Minor
	n := &network{Machine: eager.New(d), request: r, model: r.Model, dtype: r.dtype(), ranks: r.TP}
	n.NoGrad(true)
	return n
}

// vocabPad is what the rows of the embedding are rounded up to.
const vocabPad = 64

// vocab is the rows of the embedding on this rank.
func (n *network) vocab() int64 {
	return ceil(ceil(int64(n.model.Vocab), vocabPad)*vocabPad, n.ranks)
}

// weight allocates a parameter that stays as it is.
func (n *network) weight(shape ...int64) { n.Parameter(n.dtype, false, shape...) }

// linear allocates the weight of a projection, quantised where the module is:
// one of those that are joined stands for all.
func (n *network) linear(module string, out, in int64, bias bool) {
	if q := n.model.Quant; q.Converts(n.path(module)) {
		n.packed(q.Tensors(in, out))
	} else {
		n.weight(out, in)
	}
	if bias {
		n.weight(out)
	}
}

// experts allocates the weights of all experts side by side.
func (n *network) experts(count, out, in int64) {
	if q := n.model.Quant; q != nil && q.ConvertsExperts(n.path("mlp.experts")) {
		if list := q.Stacked(count, 1, in, out); list != nil {
			n.packed(list)
			return
		}
	}
	n.weight(count, out, in)
}

// packed allocates what stands for a quantised weight. Small tensors of one
// weight share blocks, so their sum is one allocation.
func (n *network) packed(list []safetensors.Tensor) {
	var sum uint64
	for i := range list {
		sum += list[i].Bytes
	}
	n.Parameter(eager.UInt8, false, int64(sum))
}

// path is the name of a module in the layer that is being built.
func (n *network) path(module string) string {
	return fmt.Sprintf("model.layers.%d.%s", n.layer, module)
}

// build allocates what loading the model leaves behind.
func (n *network) build() {
	m, h := n.model, int64(n.model.Hidden)
	n.Ledger.Begin(ledger.Build, 0)
	n.embed()
	n.rope()
	for i := range m.Layers {
		n.layer = i
		switch {
		case kindOf(m, i) == state:
			n.linearAttention()
		case m.MLA != nil:
			n.latentAttention()
		default:
			n.attention()
		}
		n.mlp(i)
		for range n.norms() {
			n.norm(h)
		}
	}
	if !m.NoFinalNorm {
		n.norm(h)
	}
	if !m.Tied {
		n.weight(n.vocab(), n.wordDim())
	}
}

// embed allocates the tables of words and of learned positions; opt may have
// words that are narrower than the layers.
func (n *network) embed() {
	m, h, words := n.model, int64(n.model.Hidden), n.wordDim()
	n.weight(n.vocab(), words)
	switch m.Family {
	case "gpt2":
		n.weight(int64(m.MaxPositions), h)
	case "opt":
		n.weight(int64(m.MaxPositions)+2, h)
	}
	if words != h {
		n.weight(h, words)
		n.weight(words, h)
	}
}

// wordDim is the width of the embedding.
func (n *network) wordDim() int64 {
	if w := n.model.WordDim; w > 0 {
		return int64(w)
	}
	return int64(n.model.Hidden)
}

// norms is how many norms of its own width a layer has.
func (n *network) norms() int {
	switch n.model.Family {
	case "gemma2", "gemma3", "glm4":
		return 4
	case "cohere2":
		return 1
	}
	return 2
}

// norm allocates a norm's weight, and its bias where the family has one.
func (n *network) norm(width int64) {
	n.weight(width)
	switch n.model.Family {
	case "gpt2", "gpt_neox", "opt", "starcoder2":
		n.weight(width)
	}
}

// rope allocates the tables of cosines and sines, which all layers share.
func (n *network) rope() {
	m := n.model
	for range m.Rope.Tables {
		n.weight(int64(m.MaxPositions), int64(m.Rope.Dim))
	}
}

func (n *network) attention() {
	m, h, d := n.model, int64(n.model.Hidden), int64(n.model.HeadDim)
	q := split(int64(m.Heads), n.ranks) * d
	kv := split(int64(m.KVHeads), n.ranks) * d
	out := q
	if m.Linear != nil { // qwen3_5: the query has a gate
		q *= 2
	}
	n.linear("self_attn.q_proj", q+2*kv, h, m.QKVBias)
	n.linear("self_attn.o_proj", h, out, m.OutBias)
	switch m.Family {
	case "qwen3", "qwen3_moe", "gemma3", "qwen3_5", "qwen3_5_moe":
		n.weight(d)
		n.weight(d)
	case "olmo2": // over all heads at once
		n.weight(q)
		n.weight(kv)
	case "gpt_oss":
		n.weight(split(int64(m.Heads), n.ranks))
	}
}

// latentAttention is deepseek's; the projections into the latent are on every rank.
func (n *network) latentAttention() {
	m, a, h := n.model, n.model.MLA, int64(n.model.Hidden)
	heads := split(int64(m.Heads), n.ranks)
	rank, qk := int64(a.KVRank), int64(a.QKHeadDim)
	if a.QRank > 0 {
		n.linear("self_attn.q_a_proj", int64(a.QRank), h, m.QKVBias)
		n.weight(int64(a.QRank))
		n.linear("self_attn.q_b_proj", heads*qk, int64(a.QRank), false)
	} else {
		n.linear("self_attn.q_proj", heads*qk, h, false)
	}
	n.linear("self_attn.kv_a_proj_with_mqa", rank+int64(a.RopeDim), h, m.QKVBias)
	n.weight(rank)
	n.linear("self_attn.kv_b_proj", heads*int64(a.NopeDim+a.VDim), rank, false)
	n.linear("self_attn.o_proj", h, heads*int64(a.VDim), m.OutBias)
}

func (n *network) linearAttention() {
	l, h := n.model.Linear, int64(n.model.Hidden)
	keys, values := int64(l.KeyHeads*l.KeyDim)/n.ranks, int64(l.ValueHeads*l.ValueDim)/n.ranks
	heads := split(int64(l.ValueHeads), n.ranks)
	n.weight(2*keys+values, 1, int64(l.ConvKernel))
	n.linear("linear_attn.in_proj_qkvz", 2*keys+2*values, h, false)
	n.linear("linear_attn.in_proj_ba", 2*heads, h, false)
	n.weight(heads)
	n.weight(heads)
	n.weight(int64(l.ValueDim))
	n.linear("linear_attn.out_proj", h, values, false)
}

func (n *network) mlp(i int) {
	m, h := n.model, int64(n.model.Hidden)
	if !m.Sparse(i) {
		n.dense(int64(m.Intermediate))
		return
	}
	e := m.MoE
	n.weight(int64(e.Experts), h)
	if m.MLPBias {
		n.weight(int64(e.Experts))
	}
	width, in := n.padded(split(int64(e.Intermediate), n.ranks), h)
	n.experts(int64(e.Experts), 2*width, in)
	n.experts(int64(e.Experts), in, width)
	if m.MLPBias {
		n.weight(int64(e.Experts), 2*width+in)
	}
	if e.SharedIntermediate > 0 {
		n.dense(int64(e.SharedIntermediate))
		if m.MLA == nil { // qwen's shared expert has a gate
			n.weight(1, h)
		}
	}
}

// padded is what the kernels of MXFP4 round the sizes of experts up to: Marlin's
// before Hopper, Triton's on it, FlashInfer's after it.
func (n *network) padded(width, hidden int64) (int64, int64) {
	if q := n.model.Quant; q == nil || q.Method != model.MXFP4 {
		return width, hidden
	}
	up := func(x, to int64) int64 { return ceil(x, to) * to }
	switch n.request.Card.Major {
	case 9:
		return up(width, 64), hidden
	case 7, 8:
		return up(width, 128), up(hidden, 256)
	}
	return up(width, 256), up(hidden, 256)
}

// dense allocates a dense MLP: gate and up in one, or up alone.
func (n *network) dense(width int64) {
	h := int64(n.model.Hidden)
	width = split(width, n.ranks)
	n.linear("mlp.gate_proj", n.joined()*width, h, n.model.MLPBias)
	n.linear("mlp.down_proj", h, width, n.model.MLPBias)
}

// joined is how many projections of a dense MLP are one: gate and up, or up alone.
func (n *network) joined() int64 {
	if n.model.GatedMLP {
		return 2
	}
	return 1
}
