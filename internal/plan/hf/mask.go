package hf

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// maskArgs is what a mask is made for.
type maskArgs struct {
	x         *eager.Tensor // inputs_embeds [batch, rows, width]
	attention *eager.Tensor // the batch's attention_mask [batch, rows], nil without one
	positions *eager.Tensor // position_ids, looked at for packed sequences; nil if not passed
	states    *eager.Tensor // encoder_hidden_states of a cross attention, nil otherwise
	ones      bool          // attention has no padding, whatever the batch's mask has
	past      *past         // what the cache says, nil without a cache
	cache     *cache        // of which past is asked for each kind of layer
}

// past is what a cache says about the lengths that a mask is made for.
type past struct {
	seen         int64 // get_query_offset: tokens before
	keys, offset int64 // get_mask_sizes: number of keys, and where they begin
	// compileable is a static cache: its decoding steps always have a mask.
	compileable bool
}

// masks are the masks of a forward pass by the type of layer. An entry is nil
// where no mask is needed.
type masks struct {
	full, sliding *eager.Tensor
	linear        *eager.Tensor // what of the batch is padding, for linear attention
	// mapped: they are in a dict, which is dropped first.
	mapped bool
}

// forLayer returns the mask for a type of layer, borrowed.
func (m *masks) forLayer(t model.LayerType) *eager.Tensor {
	switch t {
	case model.SlidingAttention:
		return m.sliding
	case model.LinearAttention:
		return m.linear
	}
	return m.full
}

func (m *masks) drop() { eager.Drop(m.full, m.sliding, m.linear) }

// decoderMasks makes the masks that the layers of a decoder need. Some families
// have one kind of layer, the others make a mask for full attention in any case.
func decoderMasks(r *run, a maskArgs) (ms masks) {
	c := r.job.Model
	switch c.Family {
	case "qwen2", "qwen3", "gemma2", "gemma3", "gpt_oss", "qwen3_5", "qwen3_5_moe", "smollm3", "cohere2", "qwen2_moe":
		ms.mapped = true
	}
	sliding := slices.Contains(c.LayerTypes, model.SlidingAttention)
	single := slices.Contains([]string{"mistral", "mixtral", "phi3", "starcoder2"}, c.Family)
	switch c.Family {
	case "gemma2", "gemma3", "cohere2":
		sliding = c.SlidingWindow > 0
	case "gpt_oss":
		// It makes both and does not look for packed sequences.
		sliding, a.positions = true, nil
	}
	if !sliding || !single {
		ms.full = causalMask(r, a, 0)
	}
	switch {
	case c.Family == "qwen2_moe" && c.SlidingWindow == 0:
		ms.sliding = emptyWindow(r, a)
	case sliding:
		ms.sliding = causalMask(r, a, int64(c.SlidingWindow))
	}
	if c.Linear != nil {
		ms.linear = recurrentMask(r, a)
	}
	return ms
}

// emptyWindow is the mask of a window of 0, which qwen2_moe makes whether or not
// a layer slides: no mask is as good as it, so it is always built.
func emptyWindow(r *run, a maskArgs) *eager.Tensor {
	if a.cache != nil {
		a.past = a.cache.past(true, a.x.Size(1))
	}
	b := newMask(r, a)
	defer b.drop()
	if a.attention == nil && a.past == nil && a.positions != nil {
		packedCheck(r, a.x.Size(0), a.x.Size(1))
	}
	return b.build(func() *eager.Tensor { return b.and(b.near, b.causalMask) })
}

// recurrentMask is create_recurrent_attention_mask: the batch's own mask if it
// has padding.
func recurrentMask(r *run, a maskArgs) *eager.Tensor {
	if a.attention == nil || a.x.Size(1) == 1 {
		return nil
	}
	m := r.machine
	ones := m.Compare("eq", a.attention)
	all := m.All(ones)
	eager.Drop(ones, all)
	if !r.padded() {
		return nil
	}
	return a.attention.Keep()
}

// causalMask is create_causal_mask and, with a window, the sliding variant.
// The caller holds the mask; it is nil if none is needed.
func causalMask(r *run, a maskArgs, window int64) *eager.Tensor {
	if a.cache != nil {
		a.past = a.cache.past(window > 0, a.x.Size(1))
	}
	b := newMask(r, a)
	defer b.drop()
	if a.attention == nil && a.past == nil && a.positions != nil {
		packedCheck(r, a.x.Size(0), a.x.Size(1))
	}
	b.window = window
	if c := r.job.Model; c.Bidirectional && c.Family == "gemma3" {
		// The causal mask is widened, which leaves nothing to skip.
		b.mapped = true
		return b.build(b.widened)
	}
	skip := !(a.past != nil && a.past.compileable && b.rows == 1)
	if skip && r.job.Attention != model.Eager && b.needless() {
		return nil
	}
	return b.build(b.causal)
}

// bidirectionalMask is create_bidirectional_mask and, with a window, the
// sliding variant.
func bidirectionalMask(r *run, a maskArgs, window int64) *eager.Tensor {
	b := newMask(r, a)
	defer b.drop()
	b.window = window
	if b.allSeen() && (window == 0 || b.keys < window) {
		return nil
	}
	return b.build(b.bidirectional)
}

// maskBuilder is the state of sdpa_mask.
type maskBuilder struct {
	run  *run
	args maskArgs

	batch, rows, keys int64
	seen, offset      int64 // of queries and keys
	window            int64
	padding           *eager.Tensor // the 2-D mask in bools
	zeros             bool          // some of it is padding
	later             int64         // unused columns of a static cache, at its end

	q, k *eager.Tensor // positions
	// mapped: the functions are run by vmap, for which scalars have rows.
	mapped bool
}

// newMask is _preprocess_mask_arguments and prepare_padding_mask.
func newMask(r *run, a maskArgs) *maskBuilder {
	m := r.machine
	b := &maskBuilder{run: r, args: a, batch: a.x.Size(0), rows: a.x.Size(1)}
	b.keys = b.rows
	if a.states != nil {
		b.keys = a.states.Size(1)
	}
	if a.attention != nil {
		b.padding = m.To(a.attention, eager.Bool)
		b.keys = a.attention.Size(1)
		b.zeros = r.padded() && !a.ones
	}
	if p := a.past; p != nil {
		b.keys, b.offset, b.seen = p.keys, p.offset, p.seen
	}
	if b.padding != nil {
		if b.later = b.keys + b.offset - b.padding.Size(1); b.later > 0 {
			wide := m.Pad(b.padding, b.keys+b.offset)
			b.padding.Drop()
			b.padding = wide
		}
	}
	return b
}

func (b *maskBuilder) drop() { b.padding.Drop() }

// padded reports whether the batch's attention_mask has zeros. The first row
// never has.
func (r *run) padded() bool {
	half := r.job.Seq / 2
	switch r.job.Mask {
	case model.LeftMask:
		return r.job.Batch > 1 && half > 0
	case model.RightMask:
		return r.job.Batch > 1
	}
	return false
}

// needless is _ignore_causal_mask_sdpa: the kernel's own causal flag, or no
// mask at all, is as good.
func (b *maskBuilder) needless() bool {
	m := b.run.machine
	padding := b.padding
	if padding != nil && padding.Size(1) > b.keys {
		at := b.arange(b.keys)
		padding = m.Empty("index", eager.Bool, b.batch, b.keys)
		at.Drop()
		defer padding.Drop()
	}
	if b.window > 0 && b.keys >= b.window {
		return false
	}
	if b.rows == 1 || b.keys == b.rows {
		if padding == nil || b.fastAll(padding, !b.zeros && b.later <= 0) {
			return true
		}
	}
	if b.seen != 0 {
		return false
	}
	if padding == nil {
		return true
	}
	now := m.Slice(padding, 1, min(b.rows, padding.Size(1)))
	ok := b.fastAll(now, !b.zeros)
	now.Drop()
	if !ok {
		return false
	}
	rest := m.Slice(padding, 1, padding.Size(1)-min(b.rows, padding.Size(1)))
	not := m.Unary("bitwise_not", rest)
	rest.Drop()
	ok = b.fastAll(not, true)
	not.Drop()
	return ok
}

// fastAll is fast_all, whose answer is known.
func (b *maskBuilder) fastAll(x *eager.Tensor, answer bool) bool {
	m := b.run.machine
	s := m.Total(x)
	e := m.Compare("eq", s)
	eager.Drop(s, e)
	return answer
}

// allSeen is padding_mask.all(), or that there is none.
func (b *maskBuilder) allSeen() bool {
	if b.padding == nil {
		return true
	}
	b.run.machine.All(b.padding).Drop()
	return !b.zeros && b.later <= 0
}

// build makes the mask [batch, 1, rows, keys]: bools, or for eager attention
// numbers to add.
func (b *maskBuilder) build(function func() *eager.Tensor) *eager.Tensor {
	m := b.run.machine
	batch := m.Empty("arange", eager.Int64, b.batch)
	head := m.Empty("arange", eager.Int64, 1)
	q, k := b.arange(b.rows), b.arange(b.keys)
	b.q, b.k = m.View(q, 1, 1, b.rows, 1), m.View(k, 1, 1, 1, b.keys)
	var y *eager.Tensor
	if b.padding != nil {
		y = b.and(function, b.seenKeys)
	} else {
		y = function()
	}
	e := m.Expand(y, b.batch, -1, b.rows, b.keys)
	eager.Drop(y, batch, head, q, k, b.q, b.k)
	if b.run.job.Attention != model.Eager {
		return e
	}
	f := m.WhereNumbers(e, b.args.x.DType())
	e.Drop()
	return f
}

// arange is torch.arange(n) + offset.
func (b *maskBuilder) arange(n int64) *eager.Tensor {
	a := b.run.machine.Empty("arange", eager.Int64, n)
	p := b.run.machine.Unary("add", a)
	a.Drop()
	return p
}

// and is and_masks.
func (b *maskBuilder) and(functions ...func() *eager.Tensor) *eager.Tensor {
	m := b.run.machine
	result := b.scalar()
	for _, f := range functions {
		mask := f()
		both := m.Binary("and", result, mask)
		eager.Drop(mask, result)
		result = both
	}
	return result
}

// scalar is what a combination of masks begins with.
func (b *maskBuilder) scalar() *eager.Tensor {
	if b.mapped {
		return b.run.machine.Compare("new_ones", b.q)
	}
	return b.run.machine.Empty("new_ones", eager.Bool)
}

// widened is or_masks of gemma3's bidirectional attention: the causal mask, and
// all keys or those of the window on both sides.
func (b *maskBuilder) widened() *eager.Tensor {
	m := b.run.machine
	result := b.scalar()
	or := func(mask *eager.Tensor) { result = rebind(result, m.Binary("or", result, mask), mask) }
	or(b.causal())
	if b.window == 0 {
		or(m.Empty("to", eager.Bool))
		return result
	}
	d := m.Binary("sub", b.q, b.k)
	d = replace(d, m.Unary("abs", d))
	or(replace(d, m.Compare("lt", d)))
	return result
}

func (b *maskBuilder) causal() *eager.Tensor {
	if b.window > 0 {
		return b.and(b.near, b.causalMask)
	}
	return b.causalMask()
}

// causalMask is causal_mask_function.
func (b *maskBuilder) causalMask() *eager.Tensor { return b.run.machine.Compare("le", b.k, b.q) }

// near is sliding_window_overlay.
func (b *maskBuilder) near() *eager.Tensor {
	first := b.run.machine.Unary("sub", b.q)
	y := b.run.machine.Compare("gt", b.k, first)
	first.Drop()
	return y
}

func (b *maskBuilder) bidirectional() *eager.Tensor {
	m := b.run.machine
	all := func() *eager.Tensor { return m.Compare("ge", b.q) }
	if b.window == 0 {
		return all()
	}
	return b.and(func() *eager.Tensor {
		d := m.Binary("sub", b.q, b.k)
		a := m.Unary("abs", d)
		d.Drop()
		y := m.Compare("le", a)
		a.Drop()
		return y
	}, all)
}

// seenKeys is padding_mask_function: rows of the padding mask by an index. The
// two indices are made contiguous where their strides differ.
func (b *maskBuilder) seenKeys() *eager.Tensor {
	m := b.run.machine
	var copies []*eager.Tensor
	if b.keys > 1 {
		copies = append(copies, m.Empty("clone", eager.Int64, b.batch, 1, 1, b.keys))
	}
	if b.batch > 1 {
		copies = append(copies, m.Empty("clone", eager.Int64, b.batch, 1, 1, b.keys))
	}
	y := m.Empty("index", eager.Bool, b.batch, 1, 1, b.keys)
	slices.Reverse(copies)
	eager.Drop(copies...)
	return y
}
