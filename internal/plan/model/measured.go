package model

import "slices"

// measuredHeads are the heads of each family whose runs were measured against
// their plans. Everything else rests on transformers' source alone.
var measuredHeads = map[string][]Head{
	"llama": {HeadCausal}, "qwen2": {HeadCausal}, "qwen3": {HeadCausal}, "qwen3_moe": {HeadCausal}, "qwen3_5": {HeadCausal},
	"qwen3_5_moe": {HeadCausal}, "mistral": {HeadCausal}, "mixtral": {HeadCausal}, "gemma2": {HeadCausal}, "gemma3": {HeadCausal},
	"deepseek_v2": {HeadCausal}, "deepseek_v3": {HeadCausal}, "gpt_oss": {HeadCausal}, "gpt2": {HeadCausal},
	"bert": {HeadMasked}, "t5": {HeadSeq2Seq}, "vit": {HeadImage},
}

// Measured reports whether runs of the model's family with its head were
// measured against their plans.
func (m *Model) Measured() bool { return slices.Contains(measuredHeads[m.Family], m.Head) }
