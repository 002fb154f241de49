package model

import "slices"

// measuredHeads are the heads of each family whose runs were measured against
// their plans. Everything else rests on transformers' source alone.
var measuredHeads = map[string][]Head{
	"llama": {HeadCausal, HeadSequence, HeadToken, HeadQuestion, HeadReward}, "qwen2": {HeadCausal, HeadSequence, HeadQuestion},
	"qwen3": {HeadCausal, HeadToken, HeadReward}, "qwen3_moe": {HeadCausal}, "qwen3_5": {HeadCausal}, "qwen3_5_moe": {HeadCausal},
	"mistral": {HeadCausal, HeadSequence}, "mixtral": {HeadCausal}, "gemma": {HeadCausal}, "gemma2": {HeadCausal, HeadToken},
	"gemma3": {HeadCausal}, "deepseek_v2": {HeadCausal}, "deepseek_v3": {HeadCausal}, "gpt_oss": {HeadCausal},
	"phi3": {HeadCausal, HeadSequence}, "granite": {HeadCausal}, "olmo2": {HeadCausal, HeadReward}, "smollm3": {HeadCausal, HeadQuestion},
	"glm4": {HeadCausal}, "cohere2": {HeadCausal}, "starcoder2": {HeadCausal}, "gpt_neox": {HeadCausal, HeadSequence, HeadToken},
	"opt": {HeadCausal, HeadSequence}, "qwen2_moe": {HeadCausal}, "gpt2": {HeadCausal, HeadSequence, HeadToken, HeadQuestion},
	"bert": {HeadMasked, HeadSequence, HeadToken, HeadQuestion}, "roberta": {HeadMasked, HeadSequence}, "xlm_roberta": {HeadToken},
	"distilbert": {HeadMasked, HeadSequence, HeadQuestion}, "modernbert": {HeadMasked, HeadSequence, HeadToken},
	"t5": {HeadSeq2Seq}, "bart": {HeadSeq2Seq}, "whisper": {HeadSeq2Seq},
	"vit": {HeadImage}, "dinov2": {HeadImage}, "clip": {HeadImage, HeadContrastive}, "siglip": {HeadImage, HeadContrastive},
}

// Measured reports whether runs of the model's family with its head were
// measured against their plans.
func (m *Model) Measured() bool { return slices.Contains(measuredHeads[m.Family], m.Head) }

// measuredWriters are the families whose generations were measured.
var measuredWriters = []string{
	"llama", "qwen2", "qwen3", "qwen3_moe", "qwen3_5", "qwen3_5_moe", "mistral", "mixtral", "gemma2", "gemma3", "deepseek_v2",
	"deepseek_v3", "gpt_oss", "gpt2", "t5",
}

// MeasuredGeneration reports whether generations of the model's family were
// measured against their plans.
func (m *Model) MeasuredGeneration() bool { return slices.Contains(measuredWriters, m.Family) }
