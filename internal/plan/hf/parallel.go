package hf

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// Parallelism over several ranks divides the job before it is run: what is
// planned is one rank's part, as a model of smaller shapes or a shorter
// sequence. No run on several ranks was measured.

// stage is a stage of a pipeline. A run without one has all of the model.
type stage struct {
	first, last bool
	flying      int // batches that are under way at the same time
}

// parts are the jobs of the ranks that may need most memory, with the stage of
// each, and what is taken for granted about the others.
func parts(j *model.Job) (jobs []*model.Job, stages []*stage, assumed []string, err error) {
	c := *j
	s := &c.Shard
	m := *j.Model
	c.Model = &m
	if t := s.Tensor; t > 1 {
		if err := divideHeads(&m, t); err != nil {
			return nil, nil, nil, err
		}
		assumed = append(assumed, "tensor parallelism: heads, MLP and vocabulary are divided, sums over ranks are made in place")
	}
	if j.Mode == model.Generate {
		s.Sequence = 0 // one token at a time cannot be divided
	}
	if s.Sequence > 1 {
		if j.Seq%int64(s.Sequence) != 0 {
			return nil, nil, nil, fmt.Errorf("%d tokens cannot be divided among %d ranks of sequence parallelism", j.Seq, s.Sequence)
		}
		if slices.Contains(sequenceFamilies, m.Family) {
			assumed = append(assumed, "sequence parallelism: norms and residuals are divided; what is gathered for a product is kept for its backward pass")
		} else {
			s.Sequence = 0
			assumed = append(assumed, "sequence parallelism: norms and residuals of "+m.ModelType+" are shown whole")
		}
	}
	if n := int64(s.Context); n > 1 {
		if j.Seq%n != 0 || j.TargetSeq%n != 0 {
			return nil, nil, nil, fmt.Errorf("%d tokens cannot be divided among %d ranks of context parallelism", max(j.Seq, j.TargetSeq), n)
		}
		c.Seq, c.TargetSeq = j.Seq/n, j.TargetSeq/n
		assumed = append(assumed, "context parallelism: keys and values travel in a ring, two blocks beside a rank's own")
	}
	if s.Expert > 1 {
		if m.MoE == nil || m.MoE.Experts%s.Expert != 0 {
			return nil, nil, nil, fmt.Errorf("the experts of %s cannot be divided among %d ranks", m.ModelType, s.Expert)
		}
		assumed = append(assumed, "expert parallelism: every rank gets as many tokens as it sends")
	}
	if s.Zero > 0 {
		assumed = append(assumed, "ZeRO: as DeepSpeed does it, with its default bucket of 5e8 elements")
	}
	if s.Pipeline > 1 {
		jobs, stages, err = pipeline(&c, s.Pipeline)
		return jobs, stages, append(assumed, "pipeline: one forward and one backward pass in turn; the larger of the first and the last stage is shown"), err
	}
	return []*model.Job{&c}, []*stage{nil}, assumed, nil
}

// sequenceFamilies are the families whose layers divide the sequence.
var sequenceFamilies = []string{
	"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3", "gpt_oss",
}

// divideHeads makes a model one rank's part under tensor parallelism.
func divideHeads(m *model.Model, t int) error {
	if m.Bart != nil || m.Dino != nil || m.Family == "clip" || m.Family == "siglip" {
		return fmt.Errorf("tensor parallelism is not planned for %s: leave tp out", m.ModelType)
	}
	if m.Heads%t != 0 || m.Intermediate%t != 0 {
		return fmt.Errorf("%d heads and an MLP of width %d cannot be divided among %d ranks", m.Heads, m.Intermediate, t)
	}
	m.Heads /= t
	m.KVHeads = max(m.KVHeads/t, 1)
	m.Intermediate /= t
	m.Vocab = (m.Vocab + t - 1) / t
	if m.MoE != nil {
		e := *m.MoE
		e.Intermediate = (e.Intermediate + t - 1) / t
		e.SharedIntermediate = (e.SharedIntermediate + t - 1) / t
		m.MoE = &e
	}
	if m.Linear != nil {
		l := *m.Linear
		l.KeyHeads, l.ValueHeads = max(l.KeyHeads/t, 1), max(l.ValueHeads/t, 1)
		m.Linear = &l
	}
	return nil
}

// pipeline makes the first and the last stage of p. Micro-batches are those of
// gradient accumulation.
func pipeline(j *model.Job, p int) ([]*model.Job, []*stage, error) {
	m := j.Model
	if p > m.Layers || m.Pair() || m.ViT != nil || m.Head != model.HeadCausal {
		return nil, nil, fmt.Errorf("%s with %d layers cannot be cut into %d stages", m.ModelType, m.Layers, p)
	}
	n := (m.Layers + p - 1) / p
	cut := func(from int) *model.Job {
		c, part := *j, *m
		part.Layers = n
		part.LayerTypes = m.LayerTypes[from : from+n]
		if m.NoRope != nil {
			part.NoRope = m.NoRope[from : from+n]
		}
		if m.MoE != nil {
			e := *m.MoE
			e.Sparse = e.Sparse[from : from+n]
			part.MoE = &e
		}
		if j.Recompute.Mode == recomputeGroup {
			c.Recompute.Groups = cutGroups(j.Recompute.Groups, from, n)
		}
		c.Model = &part
		return &c
	}
	first := &stage{first: true, flying: min(p, max(j.Accumulate, 1))}
	return []*model.Job{cut(0), cut(m.Layers - n)}, []*stage{first, {last: true, flying: 1}}, nil
}

// cutGroups is what groups of layers look like in the n layers from one on.
func cutGroups(groups []int, from, n int) []int {
	var out []int
	at := 0
	for _, g := range groups {
		size := max(g, -g)
		part := min(at+size, from+n) - max(at, from)
		at += size
		switch {
		case part <= 0:
		case g < 0:
			out = append(out, -part)
		default:
			out = append(out, part)
		}
	}
	return out
}

// sends reports whether the output of the layers goes to another stage.
func (r *run) sends() bool { return r.stage != nil && !r.stage.last }

// receives reports whether the input of the layers comes from another stage.
func (r *run) receives() bool { return r.stage != nil && !r.stage.first }

// last is the norm after the last layer, which the last stage has.
func (r *run) last(n normer, h *eager.Tensor) *eager.Tensor {
	if r.sends() {
		return h.Keep()
	}
	return r.gather(n.forward(r, h))
}

// localExperts is how many experts of a layer a rank has.
func (r *run) localExperts() int64 {
	return int64(r.job.Model.MoE.Experts / max(r.job.Shard.Expert, 1))
}

// exchange sends tokens to the ranks that have their experts, and back. It takes
// x over.
func (r *run) exchange(x *eager.Tensor) *eager.Tensor {
	if r.job.Shard.Expert > 1 {
		return replace(x, r.machine.Exchange(x))
	}
	return x
}

// gather joins the parts of a sequence under sequence parallelism. It takes x
// over.
func (r *run) gather(x *eager.Tensor) *eager.Tensor {
	if n := r.job.Shard.Sequence; n > 1 {
		return replace(x, r.machine.GatherRows(x, int64(n)))
	}
	return x
}

// scatter divides a sequence under sequence parallelism. It takes x over.
func (r *run) scatter(x *eager.Tensor) *eager.Tensor {
	if n := r.job.Shard.Sequence; n > 1 {
		return replace(x, r.machine.ScatterRows(x, int64(n)))
	}
	return x
}

// ring is attention under context parallelism: two blocks of keys and values
// of other ranks are there while it is computed, in the backward pass those and
// two blocks of their gradients.
func (r *run) ring(a attention, compute func(a attention) *eager.Tensor) *eager.Tensor {
	m, d := r.machine, a.k.DType()
	keys, values := slices.Clone(a.k.Shape()), slices.Clone(a.v.Shape()) // they may be gone when gradients come
	blocks := func(n int) []*eager.Tensor {
		var out []*eager.Tensor
		for range n {
			out = append(out, m.Empty("ring", d, keys...), m.Empty("ring", d, values...))
		}
		return out
	}
	var flying []*eager.Tensor
	q := m.AfterBackward(a.q, func() {
		eager.Drop(flying...)
		flying = nil
	})
	a.q = q
	travelling := blocks(2)
	y := compute(a)
	eager.Drop(travelling...)
	q.Drop()
	y.BeforeBackward(func() { flying = blocks(4) })
	return y
}
