package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// zero is DeepSpeed's ZeRO in stages 1 and 2: the optimizer works on one rank's
// part of all parameters, in fp32 and as one flat tensor. In stage 2 gradients
// are divided as well: they go into a bucket as they come, and a rank keeps its
// part.
type zero struct {
	run     *run
	ranks   int64
	divided bool // stage 2
	part    *eager.Tensor
	inner   optimizer

	bucket *eager.Tensor
	grads  *eager.Tensor // this rank's part, in the type of the weights
}

// zeroBucket is DeepSpeed's reduce_bucket_size, in elements.
const zeroBucket = 500_000_000

func newZero(r *run) *zero {
	z := &zero{run: r, ranks: int64(r.job.Shard.Zero), divided: r.job.Shard.ZeroStage >= 2}
	m := r.machine
	if r.job.Offload.Optimizer {
		z.inner = newOffloaded(r, z.share())
	} else {
		kind := m.Kind(ledger.Master)
		z.part = m.Empty("fp32 partition", eager.Float32, z.share())
		m.Kind(kind)
		z.inner = optimizerOf(r, []*eager.Tensor{z.part})
	}
	if z.divided {
		for _, p := range r.trained {
			p.OnGrad(func() { z.arrived(p) })
		}
	}
	return z
}

// share is the elements of a rank's part.
func (z *zero) share() int64 { return (elements(z.run.trained) + z.ranks - 1) / z.ranks }

// beforeBackward makes the bucket of a backward pass.
func (z *zero) beforeBackward() {
	if z.divided && len(z.run.trained) > 0 {
		z.bucket = z.run.machine.Empty("bucket", z.run.trained[0].DType(), zeroBucket).SetKind(ledger.Collective)
	}
}

func (z *zero) afterBackward() {
	z.bucket.Drop()
	z.bucket = nil
}

// arrived puts a gradient into the bucket.
func (z *zero) arrived(p *eager.Tensor) {
	if z.grads == nil && z.part != nil {
		z.grads = z.run.machine.Empty("gradient partition", p.DType(), z.share()).SetKind(ledger.Gradient)
	}
	p.ZeroGrad()
}

// step copies the gradients of the rank's part to fp32, and frees them.
func (z *zero) step() {
	m := z.run.machine
	if z.part == nil { // on the host
		z.inner.step()
		return
	}
	if !z.divided && len(z.run.gradients()) > 0 {
		z.grads = m.Empty("gradient partition", z.run.trained[0].DType(), z.share()).SetKind(ledger.Gradient)
	}
	if z.grads == nil {
		return
	}
	z.part.SetGrad(m.Detached(z.grads, eager.Float32).SetKind(ledger.Gradient))
	z.grads.Drop()
	z.grads = nil
	for _, p := range z.run.trained {
		p.ZeroGrad()
	}
	z.inner.step()
	z.inner.zero()
}

// zero has nothing left to do.
func (z *zero) zero() {}

func (z *zero) state() []*eager.Tensor {
	if z.part == nil {
		return nil
	}
	return append([]*eager.Tensor{z.part}, z.inner.state()...)
}
