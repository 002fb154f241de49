package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// writer is a network that generates text.
type writer interface {
	// encode runs what comes once, before any token: an encoder's states, or
	// nil. It borrows the prompt and its mask.
	encode(r *run, prompt, mask *eager.Tensor) *eager.Tensor
	// next is a forward pass with a cache: the logits of the last token.
	next(r *run, in *batch) *eager.Tensor
	// cache is an empty one.
	cache(r *run) *cache
}

// writer is the network as one that generates.
func (r *run) writer() (writer, error) {
	switch net := r.net.(type) {
	case writer:
		return net, nil
	case chunkable:
		return causalWriter{net}, nil
	}
	if r.job.Model.Head == model.HeadSeq2Seq {
		return nil, problem.New("generation with %s is not planned: plan it with {mode} train", r.job.Model.Family)
	}
	return nil, problem.New("a %s model does not generate text: plan it with {mode} train", r.job.Model.Family)
}

// causalWriter is a causal language model that writes its prompt on.
type causalWriter struct{ net chunkable }

func (causalWriter) encode(*run, *eager.Tensor, *eager.Tensor) *eager.Tensor { return nil }

func (causalWriter) cache(r *run) *cache { return newCache(r.job.Model, r.job.StaticCache) }

func (w causalWriter) next(r *run, in *batch) *eager.Tensor {
	m := r.machine
	h := w.net.base(r, in)
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	s := m.Slice(h, 1, 1)
	logits := finishLogits(r, w.net.logits(r, s))
	eager.Drop(s, h)
	return logits
}

// generate runs the prompt and then the tokens one by one: as a loop around the
// model does that picks the likeliest token, or as transformers' generate().
func (r *run) generate() error {
	w, err := r.writer()
	if err != nil {
		return err
	}
	if r.job.GenerateCall {
		if r.job.StaticCache > 0 {
			return problem.New("generate() compiles a model that has a static cache, and what compiled models allocate is not planned: " +
				"leave {generate-call} or {cache} out")
		}
		r.machine.NoGrad(true)
		return r.generateCall(w)
	}
	return r.generateLoop(w)
}

// generateLoop is a loop of forward calls. A mask grows with the tokens.
func (r *run) generateLoop(w writer) error {
	m, j := r.machine, r.job
	m.NoGrad(true)
	r.step = 1
	r.phase(ledger.Prefill)
	ids := r.input("ids", j.Batch, j.Seq)
	var mask *eager.Tensor
	if j.Mask != model.NoMask && j.Mask != "" {
		mask = r.input("ones", j.Batch, j.Seq)
	}
	past := w.cache(r)
	at := r.input("arange", j.Seq)
	in := &batch{ids: ids, mask: mask, cache: past, states: w.encode(r, ids, mask)}
	if in.states != nil { // an encoder took the prompt; the decoder begins with a token of its own
		in.ids = r.input("full", j.Batch, 1)
	}
	logits := w.next(r, in)
	at.Drop()
	var token *eager.Tensor
	first := 0 // event of a token
	for i := range j.Tokens {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.step = int(i) + 1
		r.phase(ledger.Decode)
		if i == 1 {
			if err := r.expect(first); err != nil {
				return err
			}
		}
		first = len(m.Ledger.Events)
		token = replace(token, r.pick(logits))
		if mask != nil && in.states == nil {
			one := r.input("new_ones", j.Batch, 1)
			mask = replace(mask, m.Cat(1, mask, one))
			one.Drop()
		}
		at := r.input("arange", 1)
		in.ids, in.mask = token, mask
		more := w.next(r, in)
		at.Drop()
		logits = replace(logits, more)
	}
	return nil
}

// mostEvents is how many allocations and frees a plan may have: some GiB.
const mostEvents = 1 << 27

// expect grows the ledger for all tokens, as one is like the next. The last token
// began at the given event.
func (r *run) expect(first int) error {
	if n := int64(len(r.machine.Ledger.Events) - first); n*r.job.Tokens > mostEvents {
		return problem.New("%d tokens are more allocations than a plan holds: give {generate} %d or less", r.job.Tokens, mostEvents/n)
	}
	r.machine.Ledger.Expect(first, int(r.job.Tokens))
	return nil
}

// input is whole numbers that the program makes: ids, masks, positions.
func (r *run) input(op string, shape ...int64) *eager.Tensor {
	kind := r.machine.Kind(ledger.Input)
	defer r.machine.Kind(kind)
	return r.machine.Empty(op, eager.Int64, shape...)
}

// pick is logits[:, -1:].argmax(-1).
func (r *run) pick(logits *eager.Tensor) *eager.Tensor {
	kind := r.machine.Kind(ledger.Input)
	defer r.machine.Kind(kind)
	return r.machine.Argmax(logits)
}
