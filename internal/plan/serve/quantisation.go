package serve

// quantisation is the bits that a weight takes together with its scales; 0 where
// it stays in the model's type. Embeddings, the head and norms always do.
type quantisation struct {
	linear  float64
	experts float64 // where they differ: the linears are not quantised then
	source  string
}

// quantisations has the common settings of each method: groups of 128 for AWQ and
// GPTQ, blocks of 64 with doubly quantised scales for bitsandbytes' NF4, one scale
// for a block or a row of FP8, 32 numbers and a scale for MXFP4.
var quantisations = map[string]quantisation{
	"awq":                {linear: 4 + 20.0/128, source: "4 bits, an fp16 scale and a 4-bit zero for 128 weights"},
	"gptq":               {linear: 4 + 20.0/128, source: "4 bits, an fp16 scale and a 4-bit zero for 128 weights"},
	"bitsandbytes":       {linear: 4 + 8.0/64 + 32.0/(64*256), source: "NF4, an 8-bit scale for 64 weights and an fp32 one for 256 of those"},
	"fp8":                {linear: 8, source: "8 bits, scales left out"},
	"compressed-tensors": {linear: 8, source: "8 bits, scales left out"},
	"mxfp4":              {experts: 4 + 8.0/32, source: "4 bits and an 8-bit scale for 32 weights of the experts; others stay"},
}

func (q quantisation) ofExperts() float64 { return max(q.linear, q.experts) }
