package model

import "fmt"

// maxElements bounds the whole model. Sixteen bytes for each stay far from the
// end of an int64.
const maxElements = 1e16

// wholeHeads is the check of the families whose width must divide into heads.
func (f *fields) wholeHeads() {
	if f.err == nil && f.model.Hidden%f.model.Heads != 0 {
		f.fail("the hidden size %d is not a multiple of the %d attention heads", f.model.Hidden, f.model.Heads)
	}
}

// check refuses shapes that no module could be built with.
func (m *Model) check() error {
	if m.Heads%m.KVHeads != 0 {
		return fmt.Errorf("num_attention_heads %d is not a multiple of num_key_value_heads %d%s",
			m.Heads, m.KVHeads, m.assumed("num_key_value_heads"))
	}
	if m.MoE != nil && m.MoE.TopK > m.MoE.Experts && m.anySparse() {
		return fmt.Errorf("num_experts_per_tok %d is more than the %d experts", m.MoE.TopK, m.MoE.Experts)
	}
	if n := m.elements(); n > maxElements {
		return fmt.Errorf("the model would have about %.1g parameters: check the sizes in the file", n)
	}
	return nil
}

// assumed says that a field's value is a default, for a message.
func (m *Model) assumed(field string) string {
	for _, a := range m.Assumed {
		if a.Field == field || a.Field == "text_config."+field {
			return " (" + a.Why + ": set it)"
		}
	}
	return ""
}

func (m *Model) anySparse() bool {
	for _, s := range m.MoE.Sparse {
		if s {
			return true
		}
	}
	return false
}

// elements is an upper estimate of the parameters, for the bound alone.
func (m *Model) elements() float64 {
	f := func(n int) float64 { return float64(n) }
	layer := 3*f(m.Hidden)*f(m.Intermediate) + 8*f(m.Hidden)*f(m.Heads)*f(m.HeadDim)
	if m.MoE != nil {
		layer += f(m.Hidden) * (3*f(m.MoE.Experts)*f(m.MoE.Intermediate) + 3*f(m.MoE.SharedIntermediate) + f(m.MoE.Experts))
	}
	if m.MLA != nil {
		layer += f(m.Heads)*f(m.MLA.QKHeadDim+m.MLA.VDim)*f(m.Hidden+m.MLA.QRank+m.MLA.KVRank) + f(m.Hidden)*f(m.MLA.QRank+m.MLA.KVRank)
	}
	if m.Linear != nil {
		l := m.Linear
		layer += 4 * f(m.Hidden) * (f(l.KeyHeads)*f(l.KeyDim) + f(l.ValueHeads)*f(l.ValueDim))
		layer += f(l.ConvKernel) * (2*f(l.KeyHeads)*f(l.KeyDim) + f(l.ValueHeads)*f(l.ValueDim))
	}
	layers := f(m.Layers)
	if m.T5 != nil {
		layers += 2 * f(m.T5.DecoderLayers)
		layer += f(m.T5.RelativeBuckets) * f(m.Heads)
	}
	if m.Bart != nil {
		layers += 2 * f(m.Bart.DecoderLayers)
		layer += 2 * f(m.Hidden) * f(m.Bart.DecoderIntermediate)
	}
	outside := f(m.Hidden) * (2*f(m.Vocab) + f(m.TypeVocab) + f(m.NumLabels))
	if m.Rope.Tables == 0 {
		outside += f(m.Hidden) * f(m.MaxPositions)
	}
	if v := m.ViT; v != nil {
		outside += f(m.Hidden) * (f(v.Channels)*f(v.PatchHeight)*f(v.PatchWidth) + f(v.Patches()) + f(v.PoolerSize))
	}
	return layers*layer + outside
}
