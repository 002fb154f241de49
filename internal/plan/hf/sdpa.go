package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// sdpaAttention is sdpa_attention_forward.
func sdpaAttention(r *run, a attention) *eager.Tensor {
	m := r.machine
	k, v, bias := a.k.Keep(), a.v.Keep(), a.bias
	groups := a.q.Size(1) / k.Size(1)
	if groups > 1 && !groupsInKernel(a) {
		k2 := repeatHeads(r, k, groups)
		k.Drop()
		k = k2
		v2 := repeatHeads(r, v, groups)
		v.Drop()
		v = v2
	}
	rows := a.q.Size(2)
	causal := rows > 1 && a.mask == nil && !a.bidirectional
	if causal && k.Size(2) > rows {
		// A static cache: what it has beyond the queries is not looked at.
		k2 := m.Slice(k, 2, rows)
		k.Drop()
		k = k2
		v2 := m.Slice(v, 2, rows)
		v.Drop()
		v = v2
		if bias != nil {
			bias = m.Slice(bias, 3, rows)
			defer bias.Drop()
		}
	}
	mask := a.mask
	if bias != nil {
		mask = biasMask(r, bias, mask, causal, rows, k.Size(2))
		defer mask.Drop()
		causal = false
	}
	call := eager.Attention{Q: a.q, K: k, V: v, Mask: mask, Dropout: a.dropout > 0, Causal: causal}
	y := m.SDPA(r.backend(call), call)
	t := m.Transpose(y, 1, 2)
	y.Drop()
	c := m.Contiguous(t)
	eager.Drop(t, k, v)
	return c
}

// groupsInKernel is use_gqa_in_sdpa: the kernel itself lets several query heads
// share a head of keys.
func groupsInKernel(a attention) bool {
	return a.mask == nil && a.k.Size(-1) == a.v.Size(-1) && a.v.Size(-1) <= 256
}

// biasMask is create_position_bias_mask.
func biasMask(r *run, bias, mask *eager.Tensor, causal bool, rows, keys int64) *eager.Tensor {
	m := r.machine
	switch {
	case mask == nil && causal:
		a := m.Empty("arange", eager.Int64, rows)
		b := m.Empty("arange", eager.Int64, keys)
		c := m.Empty("ge", eager.Bool, 1, 1, rows, keys)
		eager.Drop(a, b)
		y := m.Where(c, bias)
		c.Drop()
		return y
	case mask == nil:
		return bias.Keep()
	case mask.DType() == eager.Bool:
		return m.Where(mask, bias)
	}
	return m.Add(bias, mask)
}

// backend is the kernel that torch picks, or the one that the job pins. A
// pinned one that refuses the inputs is an error.
func (r *run) backend(a eager.Attention) eager.Backend {
	q := r.machine.AttentionQuery(a)
	if q == r.picked.query {
		return r.picked.kernel
	}
	k, pinned := kernels[r.job.Attention]
	if !pinned {
		k = q.Pick()
	} else if why := q.Refuses(k); why != "" {
		r.fail(fmt.Errorf("%s attention cannot run this: %s; leave the choice of the kernel to PyTorch (sdpa)", r.job.Attention, why))
		k = eager.MathAttention
	}
	if k == eager.CuDNNAttention && r.machine.Device.Capability != 90 {
		r.note("cuDNN attention takes workspaces that were measured on compute capability 9.0 and are taken to be the same here")
	}
	r.picked.query, r.picked.kernel = q, k
	return k
}

// picked is the last choice of a kernel: most layers ask for the same.
type picked struct {
	query  eager.AttentionQuery
	kernel eager.Backend
}

// kernels are those that a job can pin.
var kernels = map[model.Attention]eager.Backend{
	model.CuDNN: eager.CuDNNAttention, model.Flash: eager.FlashAttention,
	model.Efficient: eager.EfficientAttention, model.Math: eager.MathAttention,
}
