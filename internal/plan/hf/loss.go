package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// causalLoss is ForCausalLMLoss: logits in fp32, labels moved by one.
func causalLoss(r *run, logits, labels *eager.Tensor) *eager.Tensor {
	m := r.m
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
