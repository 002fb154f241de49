package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// Ways to turn queries and keys that differ from llama's.

// cutHeads is x[..., :width] and x[..., width:].
func cutHeads(r *run, x *eager.Tensor, width int64) (turned, rest *eager.Tensor) {
	return r.machine.Slice(x, -1, width), r.machine.Narrow(x, -1, x.Size(-1)-width)
}

// rotateFirst is phi3's: a part of each head turns, and is joined with the rest
// at once.
func rotateFirst(r *run, q, k *eager.Tensor, t tables) (*eager.Tensor, *eager.Tensor) {
	m := r.machine
	cos, sin := m.Unsqueeze(t.cos, 1), m.Unsqueeze(t.sin, 1)
	width := cos.Size(-1)
	q1, q2 := cutHeads(r, q, width)
	k1, k2 := cutHeads(r, k, width)
	join := func(x, rest *eager.Tensor) *eager.Tensor {
		y := rotate(r, x, cos, sin)
		return replace(y, m.Cat(-1, y, rest))
	}
	a := join(q1, q2)
	b := join(k1, k2)
	eager.Drop(cos, sin, q1, q2, k1, k2)
	return a, b
}

// rotateParts is gpt_neox's: queries and keys turn before either is joined with
// the rest of its heads.
func rotateParts(r *run, q, k *eager.Tensor, t tables) (*eager.Tensor, *eager.Tensor) {
	m := r.machine
	cos, sin := m.Unsqueeze(t.cos, 1), m.Unsqueeze(t.sin, 1)
	y, z := turnParts(r, q, k, cos, sin, rotate)
	eager.Drop(cos, sin)
	return y, z
}

// turnParts turns a part of each head of q and of k.
func turnParts(
	r *run, q, k, cos, sin *eager.Tensor, turn func(r *run, x, cos, sin *eager.Tensor) *eager.Tensor,
) (*eager.Tensor, *eager.Tensor) {
	m := r.machine
	width := cos.Size(-1)
	q1, q2 := cutHeads(r, q, width)
	k1, k2 := cutHeads(r, k, width)
	a := turn(r, q1, cos, sin)
	b := turn(r, k1, cos, sin)
	a = replace(a, m.Cat(-1, a, q2))
	b = replace(b, m.Cat(-1, b, k2))
	eager.Drop(q1, q2, k1, k2)
	return a, b
}

// rotateWide is olmo2's: the tables are fp32, so that the sums are as well.
func rotateWide(r *run, q, k *eager.Tensor, t tables) (*eager.Tensor, *eager.Tensor) {
	m := r.machine
	a, b := applyRotary(r, q, k, t)
	y, z := m.To(a, q.DType()), m.To(b, k.DType())
	eager.Drop(a, b)
	return y, z
}

// rotatePairParts is glm4's: neighbours turn together, in a part of each head.
func rotatePairParts(r *run, q, k *eager.Tensor, t tables) (*eager.Tensor, *eager.Tensor) {
	m := r.machine
	twice := func(x *eager.Tensor) *eager.Tensor {
		u := m.Unsqueeze(x, 1)
		half := replace(u, m.Slice(u, -1, u.Size(-1)/2))
		return replace(half, m.RepeatInterleave(half, 2, -1))
	}
	cos, sin := twice(t.cos), twice(t.sin)
	y, z := turnParts(r, q, k, cos, sin, rotatePairs)
	eager.Drop(cos, sin)
	return y, z
}

// rotatePairsWide is cohere2's: neighbours turn together, in fp32.
func rotatePairsWide(r *run, q, k *eager.Tensor, t tables) (*eager.Tensor, *eager.Tensor) {
	m := r.machine
	d := q.DType()
	wq, wk := m.To(q, eager.Float32), m.To(k, eager.Float32)
	cos, sin := m.Unsqueeze(t.cos, 1), m.Unsqueeze(t.sin, 1)
	a := rotatePairs(r, wq, cos, sin)
	b := rotatePairs(r, wk, cos, sin)
	y, z := m.To(a, d), m.To(b, d)
	eager.Drop(wq, wk, cos, sin, a, b)
	return y, z
}

// rotatePairs is rotate for neighbours that turn together.
func rotatePairs(r *run, x, cos, sin *eager.Tensor) *eager.Tensor {
	m := r.machine
	a := m.Mul(x, cos)
	first, second := m.Every(x, 2), m.Every(x, 2)
	n := m.Neg(second)
	pairs := m.Stack(n, first)
	n.Drop()
	h := replace(pairs, m.View(pairs, x.Shape()...))
	eager.Drop(first, second)
	b := m.Mul(h, sin)
	h.Drop()
	y := m.Add(a, b)
	eager.Drop(a, b)
	return y
}
