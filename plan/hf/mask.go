package hf

import (
	"github.com/ashlar-mem/ashlar/plan/config"
	"github.com/ashlar-mem/ashlar/plan/eager"
)

// maskArgs is what a mask is made for.
type maskArgs struct {
	x         *eager.Tensor // inputs_embeds [batch, rows, width]
	attention *eager.Tensor // the batch's attention_mask [batch, rows], nil without one
	positions *eager.Tensor // position_ids, looked at for packed sequences; nil if not passed
	states    *eager.Tensor // encoder_hidden_states of a cross attention, nil otherwise
	past      *past         // what the cache says, nil without a cache
}

// past is what a cache says about the lengths that a mask is made for.
type past struct {
	queryOffset  int64 // tokens seen before
	keys, offset int64 // get_mask_sizes: number of keys, and where they begin
	// compileable is a static cache: its decoding steps always have a mask.
	compileable bool
}

// masks are the masks of a forward pass by the type of layer. An entry is nil
// where no mask is needed.
type masks struct{ full, sliding *eager.Tensor }

// of is the mask for a type of layer, borrowed.
func (m *masks) of(t config.LayerType) *eager.Tensor {
	if t == config.SlidingAttention {
		return m.sliding
	}
	return m.full
}

func (m *masks) drop() { eager.Drop(m.full, m.sliding) }

// causalMask is create_causal_mask and, with a window, the sliding variant.
// The caller holds the mask; it is nil if none is needed.
func causalMask(r *run, a maskArgs, window int64) *eager.Tensor {
	if a.attention == nil && a.past == nil && a.positions != nil {
		packedCheck(r, a.x.Size(0), a.x.Size(1))
	}
	return nil
}

// bidirectionalMask is create_bidirectional_mask and, with a window, the
// sliding variant.
func bidirectionalMask(r *run, a maskArgs, window int64) *eager.Tensor {
	return nil
}
