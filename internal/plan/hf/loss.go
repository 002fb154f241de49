package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// causalLoss is ForCausalLMLoss: logits in fp32, labels moved by one. Where Trainer
// smooths labels the model gets none.
func causalLoss(r *run, logits, labels *eager.Tensor) *eager.Tensor {
	if r.job.Smoothing {
		return r.machine.CrossEntropy(logits, labels)
	}
	m := r.machine
	batch, rows, vocab := logits.Size(0), logits.Size(1), logits.Size(2)
	wide := m.To(logits, eager.Float32)
	padded := m.Empty("pad", eager.Int64, batch, rows+1)
	part := m.Slice(padded, 1, rows)
	shifted := m.Contiguous(part)
	part.Drop()
	flat := m.View(wide, -1, vocab)
	target := m.View(shifted, -1)
	shifted.Drop()
	wide.Drop()
	loss := m.CrossEntropy(flat, target)
	eager.Drop(flat, padded, target)
	return loss
}

// chunkable is a network whose loss can be computed some tokens at a time.
type chunkable interface {
	// base is the last hidden state [batch, rows, width].
	base(r *run, in *batch) *eager.Tensor
	// logits are the head's, of hidden states [tokens, width].
	logits(r *run, h *eager.Tensor) *eager.Tensor
}

// chunkedLoss is the sum of the losses of chunks of tokens, each in its own
// checkpoint, so that the logits of one chunk live at a time. Each chunk's
// gradient is as large as all hidden states: it is that of a slice.
func (r *run) chunkedLoss(net chunkable, in *batch) *eager.Tensor {
	m := r.machine
	last := net.base(r, in)
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	h := shifted(m, last, last.Size(2))
	last.Drop()
	y := shifted(m, in.ids)
	loss := func(args []*eager.Tensor) *eager.Tensor {
		logits := net.logits(r, args[0])
		wide := m.To(logits, eager.Float32)
		logits.Drop()
		l := m.CrossEntropy(wide, args[1])
		wide.Drop()
		return l
	}
	var sum *eager.Tensor
	tokens := h.Size(0)
	for i := int64(0); i < tokens; i += r.job.LossChunk {
		n := min(r.job.LossChunk, tokens-i)
		hs, ys := m.Narrow(h, 0, n), m.Narrow(y, 0, n)
		l := m.Checkpoint(loss, hs, ys)
		eager.Drop(hs, ys)
		var next *eager.Tensor
		if sum == nil {
			next = m.AddScalar(l)
		} else {
			next = m.Add(sum, l)
		}
		l.Drop()
		sum.Drop()
		sum = next
	}
	mean := m.DivScalar(sum)
	eager.Drop(sum, h, y)
	return mean
}

// shifted is x without one position of each row, and with the rows joined:
// x[:, :-1].reshape(-1, ...) of the hidden states, x[:, 1:].reshape(-1) of ids.
func shifted(m *eager.Machine, x *eager.Tensor, width ...int64) *eager.Tensor {
	s := m.Slice(x, 1, x.Size(1)-1)
	defer s.Drop()
	return m.Reshape(s, append([]int64{-1}, width...)...)
}
