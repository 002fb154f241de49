package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// The modes of job.Recompute.
const (
	recomputeFull      = "full"
	recomputeSelective = "selective"
	recomputeGroup     = "group"
)

// layer runs a layer, or has it checkpointed as gradient_checkpointing_enable
// does.
func (r *run) layer(l layer, x *eager.Tensor, c *shared) *eager.Tensor {
	if !r.checkpoints() {
		return r.call(l, x, c)
	}
	return r.checkpointed(l, x, *c)
}

func (r *run) checkpointed(l layer, x *eager.Tensor, c shared) *eager.Tensor {
	fn := func(args []*eager.Tensor) *eager.Tensor { return r.call(l, args[0], &c) }
	switch {
	case r.job.Recompute.Mode == recomputeSelective:
		return r.machine.CheckpointSelective(fn, c.kept(x)...)
	case r.job.Recompute.Reentrant && c.t5 != nil && c.t5.states != nil:
		r.note("use_reentrant=True in the layers that read an encoder's states: they are planned with use_reentrant=False")
	case r.job.Recompute.Reentrant:
		return r.machine.CheckpointReentrant(fn, c.kept(x)...)
	}
	return r.machine.Checkpoint(fn, c.kept(x)...)
}

// call is the layer's __call__: forward between the hooks of FSDP.
func (r *run) call(l layer, x *eager.Tensor, c *shared) *eager.Tensor {
	if r.fsdp != nil {
		return r.fsdp.layer(l, x, c)
	}
	return l.forward(r, x, c)
}

// kept is what a checkpoint keeps: all that the layer is called with.
func (c *shared) kept(x *eager.Tensor) []*eager.Tensor {
	return append([]*eager.Tensor{x, c.mask, c.rope.sin, c.rope.cos, c.positions}, c.t5.kept()...)
}

// checkpoints reports whether gradient_checkpointing_enable was called.
func (r *run) checkpoints() bool {
	return r.job.Recompute.Mode == recomputeFull || r.job.Recompute.Mode == recomputeSelective
}

// recomputes reports whether any layer is run again.
func (r *run) recomputes() bool { return r.checkpoints() || r.job.Recompute.Mode == recomputeGroup }

// layers runs a stack of layers on x, which it borrows. Layer i is called with
// at(i).
func (r *run) layers(ls []layer, x *eager.Tensor, at func(i int) shared) *eager.Tensor {
	return r.through(ls, r.scatter(x.Keep()), at)
}

// through is layers for an h whose name is bound to the output of each layer:
// it takes h over.
func (r *run) through(ls []layer, h *eager.Tensor, at func(i int) shared) *eager.Tensor {
	for i := 0; i < len(ls); {
		n := r.group(i)
		var y *eager.Tensor
		if n > 0 {
			n = min(n, len(ls)-i)
			y = r.grouped(ls, i, n, h, at)
			i += n
		} else {
			c := at(i)
			y = r.layer(ls[i], h, &c)
			i++
		}
		h.Drop()
		h = y
	}
	return h
}

// group is how many layers from layer i on are recomputed together; 0 if layer
// i is in no such group.
func (r *run) group(i int) int {
	if r.job.Recompute.Mode != recomputeGroup {
		return 0
	}
	first := 0
	for _, n := range r.job.Recompute.Groups {
		if i == first && n > 0 {
			return n
		}
		if first += max(n, -n); i < first {
			return 0
		}
	}
	return 0
}

// grouped runs layers in one checkpoint.
func (r *run) grouped(ls []layer, first, n int, x *eager.Tensor, at func(i int) shared) *eager.Tensor {
	calls := make([]shared, n)
	var keep []*eager.Tensor
	for i := range calls {
		calls[i] = at(first + i)
		for _, t := range calls[i].kept(x) {
			if t != nil && !contains(keep, t) {
				keep = append(keep, t)
			}
		}
	}
	fn := func(args []*eager.Tensor) *eager.Tensor {
		h := args[0].Keep()
		for i := range calls {
			y := r.call(ls[first+i], h, &calls[i])
			h.Drop()
			h = y
		}
		return h
	}
	return r.machine.Checkpoint(fn, keep...)
}

func contains(ts []*eager.Tensor, t *eager.Tensor) bool {
	for _, o := range ts {
		if o == t {
			return true
		}
	}
	return false
}
