package serve

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// forward is the profiling run: the layers over some tokens, then the sampler over
// the rows that are sampled from.
func (n *network) forward(tokens, rows int64) {
	m, h := n.model, int64(n.model.Hidden)
	n.Ledger.Begin(ledger.Prefill, 1)
	ids := n.Empty("input_ids", eager.Int64, 2, tokens) // and positions
	residual := n.Empty("embedding", n.dtype, tokens, h)
	x := n.Empty("rms_norm", n.dtype, tokens, h) // later ones work in place
	for i := range m.Layers {
		switch {
		case m.ParallelResidual || m.Family == "cohere2": // both read the same norm
			attended := n.attend(x.Keep(), i)
			x = n.project(x, int64(m.Intermediate))
			attended.Drop()
		case m.Sparse(i):
			x = n.mix(n.attend(x, i))
		default:
			x = n.project(n.attend(x, i), int64(m.Intermediate))
		}
	}
	residual.Drop()
	n.sample(x, min(rows, tokens))
	eager.Drop(x, ids)
}

// out allocates a projection's result.
func (n *network) out(rows, width int64) *eager.Tensor {
	n.Handle()
	return n.Empty("linear", n.dtype, rows, width)
}

// attend is a layer's attention; x is given up for its result.
func (n *network) attend(x *eager.Tensor, i int) *eager.Tensor {
	m, rows := n.model, x.Size(0)
	var in, out int64
	switch {
	case kindOf(m, i) == state:
		l := m.Linear
		in = (2*int64(l.KeyHeads*l.KeyDim) + 2*int64(l.ValueHeads*l.ValueDim)) / n.ranks
		out = int64(l.ValueHeads*l.ValueDim) / n.ranks
	case m.MLA != nil:
		heads := split(int64(m.Heads), n.ranks)
		in = heads*int64(2*m.MLA.QKHeadDim+m.MLA.VDim) + int64(m.MLA.KVRank+m.MLA.RopeDim)
		out = heads * int64(m.MLA.VDim)
	default:
		out = split(int64(m.Heads), n.ranks) * int64(m.HeadDim)
		in = out + 2*split(int64(m.KVHeads), n.ranks)*int64(m.HeadDim)
	}
	qkv := n.out(rows, in)
	if n.compiled() {
		x.Drop()
	}
	attended := n.Empty("attention", n.dtype, rows, out)
	y := n.out(rows, int64(m.Hidden))
	eager.Drop(attended, qkv)
	if !n.compiled() {
		x.Drop()
	}
	return y
}

// project is a dense MLP. Python keeps what its names hold to the end; a compiled
// graph drops a buffer after its last use.
func (n *network) project(x *eager.Tensor, width int64) *eager.Tensor {
	rows := x.Size(0)
	width = split(width, n.ranks)
	both := n.out(rows, n.joined()*width)
	if n.compiled() {
		x.Drop()
	}
	acted := n.Empty("activation", n.dtype, rows, width)
	if n.compiled() {
		both.Drop()
	}
	y := n.out(rows, int64(n.model.Hidden))
	acted.Drop()
	if !n.compiled() {
		eager.Drop(both, x)
	}
	return y
}

// moeChunk is how many tokens the experts take at once.
const moeChunk = 32768

// mix is a layer's experts: each token is there once for every expert it goes to.
func (n *network) mix(x *eager.Tensor) *eager.Tensor {
	e, h := n.model.MoE, int64(n.model.Hidden)
	rows := x.Size(0)
	var shared *eager.Tensor
	if e.SharedIntermediate > 0 {
		shared = n.project(x.Keep(), int64(e.SharedIntermediate))
	}
	router := n.out(rows, int64(e.Experts))
	width := split(int64(e.Intermediate), n.ranks)
	sent := min(rows, moeChunk) * int64(max(e.TopK, 1))
	first := n.Empty("fused_moe", n.dtype, sent, max(2*width, h)) // and the last product
	second := n.Empty("fused_moe", n.dtype, sent, width)
	y := n.Empty("fused_moe", n.dtype, rows, h)
	eager.Drop(first, second, router, x)
	if shared != nil {
		shared.Drop()
	}
	return y
}

// compiled reports whether torch.compile runs the layers.
func (n *network) compiled() bool { return n.request.v1() && !n.request.Eager }

// sample is the head and the sampler over the last rows.
func (n *network) sample(x *eager.Tensor, rows int64) {
	vocab := int64(n.model.Vocab)
	chosen := n.Empty("index", n.dtype, rows, int64(n.model.Hidden))
	logits := n.out(rows, n.vocab())
	if n.ranks > 1 {
		local := logits
		logits = n.Empty("gather", n.dtype, rows, n.vocab()*n.ranks)
		local.Drop()
	}
	exact := n.Empty("to", eager.Float32, rows, vocab)
	switch n.request.sampler() {
	case copies:
	case flashInfer:
		masked := n.Empty("top_k_mask_logits", eager.Float32, rows, vocab)
		probs := n.Empty("softmax", eager.Float32, rows, vocab)
		eager.Drop(masked, probs)
	default:
		n.sortLogits(rows, vocab)
	}
	eager.Drop(exact, logits, chosen)
}

// sortLogits is top-k and top-p by sorting all logits.
func (n *network) sortLogits(rows, vocab int64) {
	values := n.Empty("sort", eager.Float32, rows, vocab)
	indices := n.Empty("sort", eager.Int64, rows, vocab)
	// The sort has the order before it, and a second copy of keys and order.
	order := n.Empty("sort", eager.Int64, rows, vocab)
	n.Scratch(rows*vocab*(eager.Float32.Size()+eager.Int64.Size()), "sort")
	order.Drop()
	low := n.Empty("lt", eager.Bool, rows, vocab)
	probs := n.Empty("softmax", eager.Float32, rows, vocab)
	sums := n.Empty("cumsum", eager.Float32, rows, vocab)
	low.Drop()
	low = n.Empty("le", eager.Bool, rows, vocab)
	if n.request.sampler() == sortsInverted {
		inverse := n.Empty("scatter", eager.Int64, rows, vocab)
		defer inverse.Drop()
	}
	back := n.Empty("scatter", eager.Float32, rows, vocab)
	eager.Drop(back, low, sums, probs, indices, values)
}
