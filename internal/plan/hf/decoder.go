package hf

import (
	"cmp"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// network is a model that can be trained.
type network interface {
	// loss is model(**batch).loss: the outputs but for the loss are dropped.
	loss(r *run, in *batch) *eager.Tensor
}

// batch is what a model is called with. Tensors may be nil.
type batch struct {
	ids, labels, mask, pixels *eager.Tensor
	ends                      *eager.Tensor // of answers; labels are where they begin
	positions                 *eager.Tensor // position_ids; the model makes them where they are not given
	states                    *eager.Tensor // what an encoder made of the prompt
	cache                     *cache
}

// positionIDs are those that are given, or [1, rows].
func (b *batch) positionIDs(r *run) *eager.Tensor {
	if b.positions != nil {
		return b.positions.Keep()
	}
	return positionIDs(r, b.ids.Size(1))
}

// target is what a decoder predicts: the labels, or of a model that is scored
// what the encoder reads.
func (b *batch) target(scored bool) *eager.Tensor {
	if scored {
		return b.ids
	}
	return b.labels
}

func (b *batch) drop() {
	eager.Drop(b.ids, b.pixels, b.labels, b.ends, b.mask)
}

// shared is what all layers are called with.
type shared struct {
	rope      tables
	mask      *eager.Tensor // nil if none is needed
	positions *eager.Tensor
	cache     *cache
	t5        *t5Call // of a block of t5
	layer     int
}

// layer is a decoder layer.
type layer interface {
	forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor
}

// decoder is a causal language model.
type decoder struct {
	embed  *embedding
	layers []layer
	norm   normer
	// dropout is that of the embeddings.
	dropout float64
	rotary  *rotary
	local   *rotary // of sliding layers, nil if they have the same
	head    *linear
	tail    tail // a head that scores, in the place of head
}

// head is lm_head, which may be the embedding again.
func (b *builder) head(e *embedding) *linear {
	c := b.run.job.Model
	if c.Head == model.HeadNone || c.Head.Scores() || b.run.sends() {
		return nil
	}
	// The head's own weight is allocated before it is tied.
	l := b.linear("lm_head", cmp.Or(c.WordDim, c.Hidden), c.Vocab, false)
	b.run.linears = b.run.linears[:len(b.run.linears)-1]
	if c.Tied {
		l.weight.Drop()
		l.weight = e.weight
		b.run.params[len(b.run.params)-1] = Parameter{Name: "lm_head.weight", Tensor: e.weight, Tied: true}
	}
	return l
}

func (d *decoder) loss(r *run, in *batch) *eager.Tensor { return causalLM(r, d, d.tail, in) }

// causalLM is the forward pass of a causal language model with labels, or with
// another head in the place of its own.
func causalLM(r *run, net chunkable, other tail, in *batch) *eager.Tensor {
	m := r.machine
	if other != nil {
		return scored(r, other, net.base(r, in), in)
	}
	r.collectRouters()
	if r.caches() {
		in.cache = newCache(r.job.Model, 0)
		defer func() {
			for _, l := range in.cache.layers {
				r.output(l.keys, l.values)
			}
			in.cache.drop()
			in.cache = nil
		}()
	}
	h := net.base(r, in)
	if r.sends() {
		return h
	}
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	s := m.Slice(h, 1, h.Size(1))
	logits := finishLogits(r, net.logits(r, s))
	s.Drop()
	loss := r.balance(causalLoss(r, logits, in.labels), in.mask)
	r.output(logits)
	eager.Drop(h, logits)
	return loss
}

// caches reports whether a training step builds a cache. Where layers are run
// again it does not, whatever was asked for.
func (r *run) caches() bool {
	return r.trains && r.job.UseCache && !r.checkpoints()
}

// logits are the head's of some hidden states.
func (d *decoder) logits(r *run, h *eager.Tensor) *eager.Tensor { return d.head.forward(r, h) }

// base is the model without its head: the last hidden state.
func (d *decoder) base(r *run, in *batch) *eager.Tensor {
	x := d.embed.forward(r, in.ids)
	positions := in.positionIDs(r)
	ms := decoderMasks(r, maskArgs{x: x, attention: in.mask, positions: positions, cache: in.cache})
	types := r.job.Model.LayerTypes
	c := &shared{positions: positions, cache: in.cache}
	first := r.machine.Dropout(x, d.dropout, r.trains)
	turns := ropes{all: d.rotary.forward(r, x, positions)}
	if d.local != nil {
		turns.local = d.local.forward(r, x, positions)
	}
	h := r.through(d.layers, r.scatter(first), func(i int) shared {
		c.layer, c.mask, c.rope = i, ms.forLayer(types[i]), turns.forLayer(types[i])
		return *c
	})
	y := r.last(d.norm, h)
	h.Drop()
	if ms.mapped {
		if r.job.Model.Family == "gpt_oss" { // whose dict is without positions
			positions.Drop()
			positions = nil
		}
		ms.drop()
		eager.Drop(x, positions)
	} else {
		eager.Drop(positions, x)
		ms.drop()
	}
	turns.drop()
	return y
}

// positionIDs is position_ids where none are given: [1, rows].
func positionIDs(r *run, rows int64) *eager.Tensor {
	m := r.machine
	a := m.Empty("arange", eager.Int64, rows)
	p := m.Unary("add", a)
	a.Drop()
	ids := m.Unsqueeze(p, 0)
	p.Drop()
	return ids
}

// packedCheck is find_packed_sequence_indices, which looks whether positions
// begin anew within a row.
func packedCheck(r *run, batch, rows int64) {
	m := r.machine
	first := m.Empty("sub", eager.Int64, batch, 1)
	joined := m.Empty("cat", eager.Int64, batch, rows+1)
	diff := m.Empty("diff", eager.Int64, batch, rows)
	joined.Drop()
	ne := m.Empty("ne", eager.Bool, batch, rows)
	sum := m.CountUp(ne)
	ne.Drop()
	eq := m.Empty("eq", eager.Bool, batch)
	all := m.All(eq)
	eager.Drop(eq, all, first, diff, sum)
}
