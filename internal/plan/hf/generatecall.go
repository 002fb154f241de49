package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// generation is a call of model.generate(ids, attention_mask=mask,
// do_sample=False, max_new_tokens=n, min_new_tokens=n). The least number has it
// run to its end, whatever the model says; the two processors that see to it
// take a copy of the scores.
type generation struct {
	run    *run
	writer writer

	ids        *eager.Tensor // the prompt and what came since; an encoder-decoder's own
	mask       *eager.Tensor // grows with the ids, but for an encoder-decoder
	positions  *eager.Tensor // likewise; nil for an encoder-decoder
	unfinished *eager.Tensor // a number for each sequence

	in             batch // model_inputs of the last forward pass
	scores, tokens *eager.Tensor
	wide           *eager.Tensor // the logits in fp32
}

// generateCall is GenerationMixin.generate, which samples greedily.
func (r *run) generateCall(w writer) error {
	m, j := r.machine, r.job
	r.step = 1
	r.phase(ledger.Prefill)
	g := &generation{run: r, writer: w}
	prompt := r.input("ids", j.Batch, j.Seq)
	mask := r.input("ones_like", j.Batch, j.Seq)
	past := w.cache(r)
	encodes := j.Model.T5 != nil
	tokens := g.specialTokens(encodes)
	if !encodes && j.Batch > 1 { // is there padding on the right?
		g.anyOf(m.Empty("eq", eager.Bool, j.Batch))
	}
	g.ids, g.mask = prompt.Keep(), mask.Keep()
	var positions *eager.Tensor
	if !encodes {
		positions = g.countPositions()
		g.positions = positions.Keep()
	}
	states := w.encode(r, prompt, mask)
	if encodes {
		one := r.input("ones", j.Batch, 1)
		g.ids = replace(g.ids, m.Unary("mul", one))
		one.Drop()
	}
	g.unfinished = r.input("ones", j.Batch)
	first := 0 // event of a token
	for i := range j.Tokens {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if i == 2 {
			if err := r.expect(first); err != nil {
				return err
			}
		}
		first = len(m.Ledger.Events)
		logits := g.forward(i, past, states)
		g.grow(encodes)
		g.choose(logits)
		g.stop()
		logits.Drop()
	}
	// _sample returns, then generate, whose caller drops the result.
	eager.Drop(g.mask, g.positions, g.unfinished, g.in.ids, g.in.positions, g.in.mask, g.wide, g.scores, g.tokens)
	eager.Drop(tokens[0], positions, states)
	past.drop()
	eager.Drop(tokens[1:]...)
	eager.Drop(mask, g.ids)
	return nil
}

// specialTokens is _prepare_special_tokens: what sequences begin and end with,
// and for an encoder-decoder what they are filled up with and begin with there.
func (g *generation) specialTokens(encodes bool) []*eager.Tensor {
	m := g.run.machine
	n := 2
	if encodes {
		n = 3
	}
	out := make([]*eager.Tensor, n)
	for i := range out {
		out[i] = g.run.input("to")
	}
	g.anyOf(g.isIn(1))
	g.anyOf(m.Empty("lt", eager.Bool, 1))
	return out
}

// anyOf is x.any(), of which Python wants to know. It takes x over.
func (g *generation) anyOf(x *eager.Tensor) {
	a := g.run.machine.Empty("any", eager.Bool)
	eager.Drop(x, a)
}

// isIn is torch.isin of n numbers and the one that ends a sequence.
func (g *generation) isIn(n int64) *eager.Tensor {
	m := g.run.machine
	y := m.Empty("isin", eager.Bool, n)
	equal := m.Empty("eq", eager.Bool, n)
	m.Empty("any", eager.Bool, n).Drop()
	equal.Drop()
	return y
}

// countPositions is _prepare_position_ids_for_generation: padding has no
// position.
func (g *generation) countPositions() *eager.Tensor {
	m := g.run.machine
	kind := m.Kind(ledger.Input)
	defer m.Kind(kind)
	count := m.CountUp(g.mask)
	less := m.Unary("sub", count)
	count.Drop()
	padding := m.Compare("eq", g.mask)
	y := m.Unary("masked_fill", less)
	eager.Drop(padding, less)
	return y
}

// forward runs the prompt, or the last token. The inputs of the prompt die with
// _prefill, those of a token when the next ones are there.
func (g *generation) forward(i int64, past *cache, states *eager.Tensor) *eager.Tensor {
	r := g.run
	in := batch{ids: g.ids, positions: g.positions, mask: g.mask, cache: past, states: states}
	if i == 0 {
		in.ids = r.input("clone", g.ids.Size(0), g.ids.Size(1))
		logits := g.writer.next(r, &in)
		in.ids.Drop()
		r.decodes = true
		return logits
	}
	r.step = int(i)
	r.phase(ledger.Decode)
	in.ids = r.input("clone", r.job.Batch, 1)
	if g.positions != nil {
		in.positions = r.input("clone", r.job.Batch, 1)
	}
	in.mask = g.mask.Keep()
	eager.Drop(g.in.ids, g.in.positions, g.in.mask)
	g.in = in
	return g.writer.next(r, &in)
}

// grow is _update_model_kwargs_for_generation: positions and mask get an entry
// for the next token.
func (g *generation) grow(encodes bool) {
	if encodes {
		return
	}
	r, m, b := g.run, g.run.machine, g.run.job.Batch
	kind := m.Kind(ledger.Input)
	defer m.Kind(kind)
	at := r.input("arange", 1)
	sum := r.input("add", b, 1)
	at.Drop()
	sum = replace(sum, m.Unary("add", sum))
	positions := m.Cat(1, g.positions, sum)
	sum.Drop()
	one := r.input("new_ones", b, 1)
	mask := m.Cat(1, g.mask, one)
	one.Drop()
	eager.Drop(g.positions, g.mask)
	g.positions, g.mask = positions, mask
}

// choose picks the likeliest token by the logits [batch, 1, vocab], which it
// borrows, and appends it.
func (g *generation) choose(logits *eager.Tensor) {
	m := g.run.machine
	kind := m.Kind(ledger.Loss)
	b, vocab := logits.Size(0), logits.Size(2)
	g.wide = replace(g.wide, m.Empty("to", eager.Float32, b, vocab))
	shorter := g.atLeast(g.wide, false)
	g.scores = replace(g.scores, replace(shorter, g.atLeast(shorter, true)))
	m.Kind(ledger.Input)
	g.tokens = replace(g.tokens, m.Argmax(g.scores))
	// Sequences that have ended are filled up.
	going := m.Unary("mul", g.tokens)
	ended := m.Unary("rsub", g.unfinished)
	ended = replace(ended, m.Unary("mul", ended))
	tokens := m.Binary("add", going, ended)
	eager.Drop(going, ended)
	g.tokens = replace(g.tokens, tokens)
	column := m.Unsqueeze(g.tokens, 1)
	g.ids = replace(g.ids, m.Cat(1, g.ids, column))
	column.Drop()
	m.Kind(kind)
}

// atLeast is MinLengthLogitsProcessor and MinNewTokensLengthLogitsProcessor,
// which copies the scores first: as long as a sequence is short it cannot end.
func (g *generation) atLeast(scores *eager.Tensor, first bool) *eager.Tensor {
	m := g.run.machine
	vocab := scores.Size(1)
	var kept *eager.Tensor
	if first {
		kept = m.Clone(scores)
	}
	all := m.Empty("arange", eager.Int64, vocab)
	end := g.isIn(vocab)
	if !first {
		kept = m.Clone(scores)
	}
	y := m.Where(end, scores)
	eager.Drop(kept, all, end)
	return y
}

// stop asks the criteria whether sequences have ended: by their length, and by
// their last token.
func (g *generation) stop() {
	m, b := g.run.machine, g.run.job.Batch
	done := m.Empty("full", eager.Bool, b)
	length := m.Empty("full", eager.Bool, b)
	either := m.Binary("or", done, length)
	eager.Drop(length, done)
	last := g.isIn(b)
	ended := replace(last, m.Empty("any", eager.Bool, b))
	both := m.Binary("or", either, ended)
	eager.Drop(ended, either)
	not := replace(both, m.Unary("bitwise_not", both))
	kind := m.Kind(ledger.Input)
	going := m.Binary("and", g.unfinished, not)
	m.Kind(kind)
	not.Drop()
	g.unfinished = replace(g.unfinished, going)
	most := m.Empty("max", eager.Int64)
	equal := m.Compare("eq", most)
	eager.Drop(most, equal)
}
