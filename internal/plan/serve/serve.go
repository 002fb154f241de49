package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Request is a model to be served by vLLM, with vLLM's flags. Zero stands for a
// flag that was not given.
type Request struct {
	Model   *model.Model
	Card    cards.Card
	Version Version

	MaxModelLen   int64
	Utilization   float64
	TP            int64
	KVType        string // fp8, or empty for the model's type
	DType         model.DType
	MaxSeqs       int64
	BatchedTokens int64
	BlockSize     int64
	Eager         bool // enforce_eager: neither compiled nor captured
	V0            bool // the V0 engine of 0.8 to 0.10
	PrefixCaching bool // of models with states; others are not changed by it
	FlashInfer    bool // V1's sampler before 0.11.1
	// WeightBytes is the size of the checkpoint's files, if they were read.
	WeightBytes uint64
}

// Part is a part of the memory that vLLM may use.
type Part struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"`
	// Measured reports whether the rule was compared with recorded runs of this
	// project; Source is where it is from.
	Measured bool   `json:"measured"`
	Source   string `json:"source"`
}

// Answer is what is left for the cache, and what that is enough for.
type Answer struct {
	Engine  string `json:"engine"`
	Version string `json:"version,omitempty"`
	Model   string `json:"model"`
	// LeavesOut are parts of the model that are not planned.
	LeavesOut []string `json:"leaves_out"`
	// Fits reports whether one request of the maximal length fits; nil without a card.
	Fits *bool  `json:"fits"`
	Card string `json:"card,omitempty"`
	// TotalBytes are the card's, UsableBytes the part that the server may use.
	TotalBytes  uint64  `json:"total_bytes,omitempty"`
	Utilization float64 `json:"gpu_memory_utilization,omitempty"`
	UsableBytes uint64  `json:"usable_bytes,omitempty"`
	Parts       []Part  `json:"parts"`
	// Available is what is left for the cache; below zero if the rest does not fit.
	Available int64 `json:"available_kv_cache_bytes"`

	// TokenBytes is what a token adds on each rank in the layers that keep all of
	// them, SequenceBytes what a request of the maximal length takes.
	TokenBytes    int64   `json:"kv_bytes_per_token"`
	SequenceBytes int64   `json:"kv_bytes_per_sequence"`
	BlockSize     int64   `json:"block_size"`
	BlockBytes    int64   `json:"block_bytes"`
	Groups        int     `json:"kv_cache_groups"`
	Blocks        int64   `json:"blocks"`
	Tokens        int64   `json:"tokens"`
	MaxModelLen   int64   `json:"max_model_len"`
	Concurrency   float64 `json:"concurrency"`

	BatchedTokens int64 `json:"max_num_batched_tokens"`
	MaxSeqs       int64 `json:"max_num_seqs"`
	TP            int64 `json:"tensor_parallel_size"`
	// Smallest is the smallest known card that one request fits on; "" if none.
	Smallest string `json:"smallest_card"`
	// Measured is false: no plan of this kind was compared with a run of this
	// project. docs/serve.md compares it with public logs.
	Measured    bool     `json:"measured"`
	Assumed     []string `json:"assumed"`
	NotModelled []string `json:"not_modelled"`
}

// Plan answers a request. Without a card, or with one of no size, it says which
// is the smallest that suffices.
func Plan(ctx context.Context, r Request) (*Answer, error) {
	if err := r.settle(); err != nil {
		return nil, err
	}
	known := r.Card.TotalBytes > 0
	smallest, err := r.smallest(ctx)
	if err != nil {
		return nil, err
	}
	if !known && smallest != nil {
		r.Card = *smallest
	}
	if r.Card.TotalBytes == 0 {
		all := bySize()
		r.Card = all[len(all)-1]
	}
	a, err := r.on(ctx, r.Card)
	if err != nil {
		return nil, err
	}
	if smallest != nil {
		a.Smallest = smallest.Name
	}
	fits := a.Concurrency >= 1
	if known {
		a.Fits = &fits
	}
	r.say(a, known)
	return a, nil
}

// settle checks the request and fills in what does not depend on the card.
func (r *Request) settle() error {
	m := r.Model
	if r.Version == (Version{}) {
		r.Version = Newest
	}
	r.TP = max(r.TP, 1)
	if r.Utilization == 0 {
		r.Utilization = r.Version.utilization()
	}
	switch {
	case m.Head != model.HeadCausal || m.Bidirectional || m.Pair():
		return problem.New("{serve} vllm is planned for decoders with a causal head, such as LlamaForCausalLM, not for %s; without {serve} the plan is that of transformers", m.Class)
	case r.MaxModelLen <= 0:
		return problem.New("{max-model-len} is missing: say how many tokens a request may have, for instance {max-model-len} 32768")
	case m.Longest() > 0 && r.MaxModelLen > int64(m.Longest()):
		return problem.New("{max-model-len} %d: %s has a table for %d positions; give at most that", r.MaxModelLen, m.ModelType, m.Longest())
	case int64(m.Heads)%r.TP != 0:
		return problem.New("{tp} %d: the model has %d heads, and vLLM divides them evenly; give a divisor", r.TP, m.Heads)
	case m.MLA == nil && int64(m.KVHeads)%r.TP != 0 && r.TP%int64(m.KVHeads) != 0:
		return problem.New("{tp} %d: the model has %d key-value heads, and vLLM gives each rank as many; give a divisor or a multiple", r.TP, m.KVHeads)
	case m.Quant != nil && m.Quant.Method == model.MXFP4 && m.Family != "gpt_oss":
		return problem.New("{quant} mxfp4 is for the experts of gpt_oss, not for %s: choose another, fp8 for instance", m.ModelType)
	case r.Utilization <= 0 || r.Utilization > 1:
		return problem.New("{gpu-memory-utilization} %g: give a part of the card, above 0 and at most 1", r.Utilization)
	}
	return m.Runnable()
}

// on plans the request for a card.
func (r *Request) on(ctx context.Context, c cards.Card) (*Answer, error) {
	r.Card = c
	p, err := r.profile(ctx)
	if err != nil {
		return nil, err
	}
	l := r.layOut()
	a := &Answer{
		Engine: "vllm", Version: r.Version.String(), Model: r.Model.Class, Card: c.Name, TotalBytes: c.TotalBytes, Utilization: r.Utilization,
		UsableBytes: uint64(float64(c.TotalBytes) * r.Utilization),
		TokenBytes:  l.growing, BlockSize: l.blockSize, BlockBytes: l.blockBytes(), Groups: len(l.groups),
		MaxModelLen: r.MaxModelLen, BatchedTokens: r.batched(), MaxSeqs: r.seqs(), TP: r.TP,
		Assumed: []string{}, NotModelled: []string{}, LeavesOut: append([]string{}, r.Model.LeavesOut...),
	}
	a.Parts = r.parts(p)
	a.Available = int64(a.UsableBytes)
	for _, part := range a.Parts {
		a.Available -= int64(part.Bytes)
	}
	a.SequenceBytes = l.perRequest(r.MaxModelLen, r.batched()) * l.blockBytes()
	a.Blocks = l.blocks(a.Available)
	a.Tokens = l.tokens(a.Blocks, r.MaxModelLen, r.batched())
	a.Concurrency = l.concurrency(a.Blocks, r.MaxModelLen, r.batched())
	return a, nil
}

// parts lists what is taken off before the cache.
func (r *Request) parts(p profiled) []Part {
	how := r.Version.accounting(r.v1())
	parts := []Part{
		{Name: "weights", Bytes: p.weights, Source: "a symbolic run: the parameters of vLLM's modules through the allocator"},
		{Name: "activations", Bytes: p.activations(), Source: fmt.Sprintf("a symbolic run of %d tokens, and a sampler over %d rows", r.batched(), min(r.seqs(), r.batched()))},
	}
	if how == segments && p.reserved > p.peak {
		parts = append(parts, Part{Name: "cached blocks", Bytes: p.reserved - p.peak, Source: "the same run: what the allocator holds beyond the peak, which vLLM counts before 0.6.4"})
	}
	outside := r.Card.OutsideBytes - min(r.Card.OutsideBytes, r.Card.ContextBytes)
	source := "kernels and handles: " + r.Card.ContextSource
	if r.Version.countsContext(r.v1()) {
		outside, source = r.Card.OutsideBytes, "CUDA's context, kernels and handles: "+r.Card.ContextSource
	}
	parts = append(parts, Part{Name: "outside torch", Bytes: outside, Source: source})
	if r.TP > 1 {
		n, _, source := cards.NCCL(1, false)
		parts = append(parts, Part{Name: "NCCL", Bytes: n, Source: source})
	}
	if r.deductsGraphs() {
		parts = append(parts, Part{Name: "CUDA graphs", Bytes: graphBytes, Source: graphSource})
	}
	return parts
}

// graphBytes is what CUDA graphs are taken to need: their memory is the driver's
// and is not modelled.
const (
	graphBytes  = 512 << 20
	graphSource = "not modelled: the middle of what public logs print, 0.2 to 1.9 GiB"
)

// bySize lists the known cards of NVIDIA, the smallest first.
func bySize() []cards.Card {
	all := slices.DeleteFunc(cards.List(), func(c cards.Card) bool { return c.Vendor != "" })
	slices.SortStableFunc(all, func(a, b cards.Card) int { return cmp.Compare(a.TotalBytes, b.TotalBytes) })
	return all
}

// smallest is the smallest card that a request of the maximal length fits on, or nil.
func (r *Request) smallest(ctx context.Context) (*cards.Card, error) {
	probe := *r
	for _, c := range bySize() {
		a, err := probe.on(ctx, c)
		if err != nil {
			return nil, err
		}
		if a.Concurrency >= 1 {
			return &c, nil
		}
	}
	return nil, nil
}

// dtype is the type of the weights that are not quantised: the config's, and half
// precision where that is fp32.
func (r *Request) dtype() eager.DType {
	t := string(r.DType)
	if t == "" {
		t = r.Model.DType
	}
	if t == "float16" || t == string(model.FP16) || t == "float32" && r.DType == "" {
		return eager.Float16
	}
	if t == string(model.FP32) {
		return eager.Float32
	}
	return eager.BFloat16
}

// sampler is the one that runs.
func (r *Request) sampler() sampling {
	switch {
	case r.runnerV2():
		return copies
	case r.v1() && r.FlashInfer:
		return flashInfer
	}
	return r.Version.sampler()
}

// logged are the families whose whole plans were compared with logs.
var logged = []string{"gpt_oss", "llama", "mistral", "opt", "phi3", "qwen2", "qwen3"}

// say fills in what was assumed and what is left out.
func (r *Request) say(a *Answer, known bool) {
	assume := func(format string, args ...any) { a.Assumed = append(a.Assumed, fmt.Sprintf(format, args...)) }
	leave := func(format string, args ...any) { a.NotModelled = append(a.NotModelled, fmt.Sprintf(format, args...)) }
	if !known {
		assume("--gpu %s: the smallest that one request fits on", r.Card.Name)
	}
	if Newest.less(r.Version) {
		assume("vLLM %s is planned as %s, the newest whose sources were read", r.Version, Newest)
	}
	if r.BatchedTokens == 0 {
		assume("--max-num-batched-tokens %d: the default of vllm serve %s on such a card", r.batched(), r.Version)
	}
	if r.MaxSeqs == 0 {
		assume("--max-num-seqs %d: likewise", r.seqs())
	}
	if r.MaxModelLen > int64(r.Model.MaxPositions) && (r.Model.Rope.Type == "default" || r.Model.Rope.Type == "llama3") {
		assume("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1: the config has %s positions, and vLLM refuses more without it", units.Count(int64(r.Model.MaxPositions)))
	}
	if !slices.Contains(logged, r.Model.Family) {
		assume("%s is built in vLLM as in transformers, with projections of one input joined: no log of its weights was compared", r.Model.Family)
	}
	switch q := r.Model.Quant; {
	case r.WeightBytes > 0:
	case q != nil:
		assume("%s weights: as %s lays them out; --weights FILE has the checkpoint's", q, q.Sources())
	case r.Model.Quantised != "":
		leave("quantised weights (%s): planned as if they were not; give --weights FILE", r.Model.Quantised)
	}
	if !r.deductsGraphs() && !r.Eager {
		leave("CUDA graphs: vLLM %s captures them outside its share of the card", r.Version)
	}
	if r.Card.Vendor != "" {
		leave("vLLM on a card of %s: the rules are those of CUDA", r.Card.Maker())
	}
	leave("vision and audio encoders, LoRA slots, draft models of speculative decoding")
	if r.Card.Total != cards.Measured {
		assume("%s has %s: %s", r.Card.Name, units.Size(r.Card.TotalBytes), r.Card.TotalSource)
	}
}
