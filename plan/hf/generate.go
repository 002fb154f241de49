package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/plan/eager"
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// generate runs the prompt and then the tokens one by one, as a loop around
// the model does that picks the likeliest token.
func (r *run) generate() error {
	net, ok := r.net.(chunkable)
	if !ok {
		return fmt.Errorf("a %s model does not generate text: plan it with --mode train", r.job.Model.Family)
	}
	m, j := r.m, r.job
	m.NoGrad(true)
	r.step = 1
	r.phase(ledger.Prefill)
	input := func(shape ...int64) *eager.Tensor {
		kind := m.Kind(ledger.Input)
		defer m.Kind(kind)
		return m.Empty("ids", eager.Int64, shape...)
	}
	ids := input(j.Batch, j.Seq)
	past := newCache(j.Model, j.StaticCache)
	at := input(j.Seq)
	logits := r.next(net, &batch{ids: ids, cache: past})
	at.Drop()
	var token *eager.Tensor
	for i := range j.Tokens {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.step = int(i) + 1
		r.phase(ledger.Decode)
		token = replace(token, input(j.Batch, 1))
		at := input(1)
		more := r.next(net, &batch{ids: token, cache: past})
		at.Drop()
		logits = replace(logits, more)
	}
	return nil
}

// next is a forward pass with a cache: the logits of the last token.
func (r *run) next(net chunkable, in *batch) *eager.Tensor {
	m := r.m
	h := net.base(r, in)
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	s := m.Slice(h, 1, 1)
	logits := capLogits(r, net.logits(r, s))
	eager.Drop(s, h)
	return logits
}
