package model

import "fmt"

// Head is what stands on top of the base model.
type Head string

// The heads that a plan knows. HeadNone is the base model alone.
const (
	HeadNone    Head = "none"
	HeadCausal  Head = "causal"
	HeadMasked  Head = "masked"
	HeadSeq2Seq Head = "seq2seq"
	HeadImage   Head = "image"
	// The heads that score: a whole sequence, its tokens, where an answer begins
	// and ends, or a pair of sequences of which one is to have the higher score.
	HeadSequence Head = "sequence"
	HeadToken    Head = "token"
	HeadQuestion Head = "question"
	HeadReward   Head = "reward"
	// HeadContrastive compares images and texts.
	HeadContrastive Head = "contrastive"
)

// LayerType is how one layer mixes tokens, in transformers' own words.
type LayerType string

// The layer types of the families read here.
const (
	FullAttention    LayerType = "full_attention"
	SlidingAttention LayerType = "sliding_attention"
	LinearAttention  LayerType = "linear_attention"
)

// Model is a model's shape after all spellings, nulls and defaults of its
// family are settled. Counts are as transformers would build the model with;
// a field that the family does not have is zero.
type Model struct {
	// Family is the folder of transformers that implements the model, such as
	// llama, qwen3_moe or modernbert.
	Family string
	// ModelType is the file's model_type: "gemma3_text" or "gemma3" where
	// Family is "gemma3".
	ModelType string
	// Head is what the model predicts with; Class is the transformers class
	// that has it, such as "LlamaForCausalLM".
	Head  Head
	Class string
	// DType is the file's dtype: "float32", "bfloat16", "float16", or "" where
	// the file names none.
	DType string
	// Quantised is the method that the file's weights are quantised with, such as
	// "fp8" or "mxfp4"; "" where they are not. Shapes are those without it.
	Quantised string
	// Quant is the same with all that follows from it; nil where the weights are
	// not quantised, or in a way that is not known here.
	Quant *Quant

	Hidden       int // width of the residual stream: hidden_size, n_embd, d_model
	Intermediate int // width of a dense MLP: intermediate_size, n_inner, d_ff
	Layers       int // decoder layers; encoder layers for bert, t5 and vit
	Heads        int // query heads
	KVHeads      int // key and value heads; equal to Heads without grouping
	HeadDim      int // width of one head; for MLA the rotary part, as in transformers
	Vocab        int // rows of the embedding; 0 for vit
	MaxPositions int // rows of a learned position table, or the trained length
	TypeVocab    int // bert: rows of the token type table
	NumLabels    int // width of a classifier

	ClassifierDropout float64 // before a classifier

	Tied       bool   // the head uses the embedding's weight
	QKVBias    bool   // q, k, v projections have a bias; for MLA the two *_a projections
	OutBias    bool   // the output projection of attention has a bias
	MLPBias    bool   // the projections of a dense MLP have a bias
	Activation string // name in transformers' ACT2FN: silu, gelu, gelu_new, gelu_pytorch_tanh, relu ...
	GatedMLP   bool   // gate and up projections instead of one

	// Dropout probabilities. Embedding is after the embeddings, Residual after
	// attention's and the MLP's output, Attention on the probabilities.
	EmbeddingDropout float64
	ResidualDropout  float64
	AttentionDropout float64

	// LayerTypes has one entry per layer (for t5: per encoder layer).
	LayerTypes []LayerType
	// NoRope says for every layer whether it has no rotary positions; nil where
	// all have them or none (smollm3, cohere2).
	NoRope []bool
	// ParallelResidual: attention and the MLP read the same input (gpt_neox).
	ParallelResidual bool
	// Opt: width of the embeddings, 0 where it is Hidden; norms after the parts
	// of a layer instead of before; no norm after the last layer.
	WordDim     int
	PostNorm    bool
	NoFinalNorm bool
	// SlidingWindow is the window of the sliding layers, 0 where there is none.
	SlidingWindow int
	// Bidirectional is set where tokens see what follows them: bert, vit, and
	// gemma with use_bidirectional_attention.
	Bidirectional bool

	AttnSoftcap  float64 // gemma: tanh cap on attention scores, 0 for none
	FinalSoftcap float64 // gemma: tanh cap on the logits, 0 for none

	Rope     Rope
	UseCache bool

	MoE    *MoE    // nil for a dense model
	MLA    *MLA    // nil unless deepseek
	Linear *Linear // nil unless some layers are linear attention
	T5     *T5     // nil unless t5
	ViT    *ViT    // nil unless vit

	ModernBert *ModernBert // nil unless modernbert
	Dino       *Dino       // nil unless dinov2
	Bart       *Bart       // nil unless bart or whisper
	Audio      *Audio      // nil unless whisper
	// Vision is the tower of images beside that of text, which the other fields
	// are about; nil unless both are trained. Projection is the width they meet in.
	Vision     *Model
	Projection int

	// LeavesOut are parts of the model that are not planned, such as "the vision
	// tower".
	LeavesOut []string
	// Assumed lists the fields that the file leaves out and what was taken for
	// them; Ignored those that the file has and that change nothing here.
	Assumed []Assumption
	Ignored []Assumption
}

// Assumption is a field of the file, the value taken for it (or, if ignored,
// the value it has) and why.
type Assumption struct {
	Field string `json:"field"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// Rope is what the rotary tables look like.
type Rope struct {
	// Tables is how many different tables a forward pass computes: 0 without
	// rotary positions, 2 for gemma3 (global and local), else 1.
	Tables int
	// Dim is the number of dimensions of a head that rotate.
	Dim int
	// Type is transformers' rope_type: default, linear, dynamic, yarn, llama3 ...
	Type string
	// PartialFactor is the part of a head that rotates, 1 for all of it.
	PartialFactor float64
	// Interleaved: pairs that turn together lie next to each other (deepseek_v3).
	Interleaved bool
}

// MoE is the mixture of experts of the layers that have one.
type MoE struct {
	Experts      int // routed experts
	TopK         int // experts per token; 0 where the file does not say, see [Model.Runnable]
	Intermediate int // width of one routed expert
	// SharedIntermediate is the width of the MLP that every token passes, for
	// deepseek the shared experts side by side; 0 for none.
	SharedIntermediate int
	SharedExperts      int // deepseek: how many shared experts that is

	Groups       int    // deepseek: n_group; 0 for no groups
	TopKGroups   int    // deepseek: topk_group
	TopKMethod   string // deepseek_v2: greedy or group_limited_greedy
	NormTopK     bool   // weights of the chosen experts are normalised
	RouterLogits bool   // output_router_logits: a training step adds the balancing loss
	JitterNoise  bool   // mixtral: the router's input is multiplied by noise in training

	// Sparse says for every layer whether it has experts; the others have a
	// dense MLP of width Model.Intermediate.
	Sparse []bool
}

// MLA is deepseek's attention through low-rank projections.
type MLA struct {
	QRank     int // q_lora_rank; 0 for a plain q projection
	KVRank    int // kv_lora_rank
	NopeDim   int // qk_nope_head_dim
	RopeDim   int // qk_rope_head_dim
	VDim      int // v_head_dim
	QKHeadDim int // NopeDim + RopeDim
}

// Linear is the gated delta rule of qwen3_5's linear attention layers.
type Linear struct {
	KeyHeads   int
	ValueHeads int
	KeyDim     int // width of one key head
	ValueDim   int // width of one value head
	ConvKernel int // taps of the causal convolution
}

// T5 is what an encoder and decoder pair adds.
type T5 struct {
	DecoderLayers       int
	RelativeBuckets     int // rows of the relative position table
	RelativeMaxDistance int
	ScaleDecoderOutputs bool // the decoder's output is scaled before the head
}

// Bart is what bart's pair of an encoder and a decoder adds. The other fields are
// the encoder's.
type Bart struct {
	DecoderLayers, DecoderHeads, DecoderIntermediate int
	ActivationDropout                                float64
}

// Audio is the sound that whisper's encoder takes.
type Audio struct {
	Mels      int // bins of a spectrogram
	Positions int // of the encoder; the spectrogram has twice as many
}

// Pair reports whether the model is an encoder and a decoder.
func (m *Model) Pair() bool { return m.T5 != nil || m.Bart != nil }

// DecoderLayers is how many layers the decoder of a pair has.
func (m *Model) DecoderLayers() int {
	switch {
	case m.T5 != nil:
		return m.T5.DecoderLayers
	case m.Bart != nil:
		return m.Bart.DecoderLayers
	}
	return 0
}

// ViT is the image side of a vision transformer.
type ViT struct {
	ImageHeight, ImageWidth int
	PatchHeight, PatchWidth int
	Channels                int
	PoolerSize              int // width of the base model's pooler
}

// Patches is the number of patches that an image is cut into.
func (v *ViT) Patches() int {
	return (v.ImageHeight / v.PatchHeight) * (v.ImageWidth / v.PatchWidth)
}

// Tokens is the length of the sequence: the patches and the class token.
func (v *ViT) Tokens() int { return v.Patches() + 1 }

// Images is what the model's images are cut into; nil if it takes none.
func (m *Model) Images() *ViT {
	if m.Vision != nil {
		return m.Vision.ViT
	}
	return m.ViT
}

// Sparse says whether layer i has experts.
func (m *Model) Sparse(i int) bool {
	return m.MoE != nil && i >= 0 && i < len(m.MoE.Sparse) && m.MoE.Sparse[i]
}

// Window is the sliding window of layer i, 0 if it sees everything.
func (m *Model) Window(i int) int {
	if i >= 0 && i < len(m.LayerTypes) && m.LayerTypes[i] == SlidingAttention {
		return m.SlidingWindow
	}
	return 0
}

// Longest is how many tokens a learned table of positions has room for, 0 where
// there is none. Roberta's begins after the padding's.
func (m *Model) Longest() int {
	switch {
	case m.Rope.Tables > 0 || m.T5 != nil || m.ViT != nil:
		return 0
	case m.Family == "roberta" || m.Family == "xlm_roberta":
		return m.MaxPositions - 2
	}
	return m.MaxPositions
}

// Runnable reports what keeps the model from a forward pass although
// transformers would build it, in one line, or nil.
func (m *Model) Runnable() error {
	if m.MoE == nil {
		return nil
	}
	if m.MoE.TopK == 0 {
		return fmt.Errorf("num_experts_per_tok is not set and %s has no default for it: add it to the config", m.Family)
	}
	return nil
}
