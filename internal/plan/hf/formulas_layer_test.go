package hf_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// The closed formulas that people quote, as tests of the ledger: what the
// symbolic run keeps is what arithmetic on the shapes says. Where a formula only
// comes near, the test has the exact sum and says what the formula leaves out;
// docs/measured/plan.md lists these places.

// The shape of the small models.
const (
	fB, fS, fN = 3, 512, 3 * 512
	fH, fI     = 768, 2048
	fQ, fKV    = 12, 4 // heads
	fD         = 64
	fV         = 5000
	fE, fK     = 8, 2 // experts, and those of a token
)

// decoderFields are that shape as a config has it; LAYERS is left open.
const decoderFields = `"hidden_size":768,"intermediate_size":2048,"num_hidden_layers":LAYERS,"num_attention_heads":12,` +
	`"num_key_value_heads":4,"head_dim":64,"vocab_size":5000,"max_position_embeddings":2048`

func decoderConfig(family, more string) string {
	return fmt.Sprintf(`{"model_type":%q,%s%s}`, family, decoderFields, more)
}

// formulaJob is a bf16 training job of a config with so many layers.
func formulaJob(t *testing.T, text string, layers int, change func(*model.Job)) *model.Job {
	t.Helper()
	m, err := model.Read(strings.NewReader(strings.ReplaceAll(text, "LAYERS", fmt.Sprint(layers))))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	j := &model.Job{
		Model: m, Mode: model.Train, Batch: fB, Seq: fS, DType: model.BF16, Optimizer: model.AdamWFused, Steps: 3, Accumulate: 1,
		Attention: model.Flash, Recompute: model.Recompute{Mode: "none"}, Workspace: 32 << 20, Capability: 90,
	}
	if m.ViT != nil {
		j.Seq = 0
	}
	if change != nil {
		change(j)
	}
	return j
}

func runJob(t *testing.T, j *model.Job) *hf.Result {
	t.Helper()
	r, err := hf.Run(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// phaseEnd is the last event of the first phase of a name in the last step.
func phaseEnd(l *ledger.Ledger, name string) int {
	from := l.Scored()
	for i, p := range l.Phases {
		if p.First >= from && p.Name == name {
			if i+1 < len(l.Phases) {
				return l.Phases[i+1].First - 1
			}
			return len(l.Events) - 1
		}
	}
	return -1
}

// kept is what the last forward pass leaves to the backward pass beside what
// belongs to the loss.
func kept(l *ledger.Ledger) (bytes int64) {
	from, end := l.Scored(), phaseEnd(l, ledger.LossPhase)
	for i := range l.Tensors {
		if t := &l.Tensors[i]; int(t.Birth) >= from && t.Live(end) && t.Kind != ledger.Loss {
			bytes += t.Bytes
		}
	}
	return bytes
}

// What a layer keeps for the backward pass (4.2, and 4.4 for recomputation): the
// difference that one more layer makes.
func TestSavedByLayer(t *testing.T) {
	const (
		n = fN
		// What the random state of a kernel takes, which no formula counts.
		flashState, cudnnState = 24, 16

		rms      = 6*fH + 4 // of one norm, for each row
		swiglu   = 2*fH + 8*fI
		heads    = 2*fH + 4*fQ*fD + 4*fKV*fD + 4*fQ // input, q, k, v, out and logsumexp
		decoder  = n * (2*rms + swiglu + heads)     // N(16H + 8I + 4 nq d + 4 nkv d + 4 nq + 8)
		expanded = 4 * n * (fQ - fKV) * fD          // K and V repeated to the query heads

		// The router's softmax, the chosen experts (8 bytes each), their weights
		// (4), the order of the rows and its inverse (8 each), which row is whose
		// (8 and 4) and which rows are there (1). The usual formula says about 8E + 32k.
		routing = n * (4*fE + 41*fK + 4)
		experts = n*fK*(4*fH+8*fI) + routing + 4*fE

		// Of deepseek_v3.
		nh, ql, kl, dn, dr, dv = 8, 384, 256, 128, 64, 128
	)
	mla := `"hidden_size":768,"intermediate_size":2048,"moe_intermediate_size":512,"num_hidden_layers":LAYERS,"num_attention_heads":8,` +
		`"num_key_value_heads":8,"n_shared_experts":1,"n_routed_experts":8,"num_experts_per_tok":2,"n_group":2,"topk_group":1,"first_k_dense_replace":99,` +
		`"q_lora_rank":384,"kv_lora_rank":256,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"vocab_size":5000`
	linears := int64(2*fH*fQ*fD + 2*fH*fKV*fD + 3*fH*fI)
	for _, tt := range []struct {
		name, config string
		change       func(*model.Job)
		want         int64
	}{
		{"llama", decoderConfig("llama", ""), nil, decoder + flashState},
		{"mistral", decoderConfig("mistral", ""), nil, decoder + flashState},
		{"qwen2", decoderConfig("qwen2", ""), nil, decoder + flashState},
		{"qwen3", decoderConfig("qwen3", ""), nil, decoder + n*(6*fQ*fD+6*fKV*fD+4*(fQ+fKV)) + flashState},
		{"mixtral", decoderConfig("mixtral", `,"num_local_experts":8,"num_experts_per_tok":2`), nil, decoder - 8*n*fI + experts + flashState},
		{
			// The usual formula for gemma3 leaves out the scalars of its norms and what
			// is 4w of each.
			"gemma3", decoderConfig("gemma3_text", `,"sliding_window":4096,"layer_types":LISTED`), nil,
			n*(4*(8*fH+4)+swiglu+heads+8*(fQ+fKV)*fD+4*(fQ+fKV)) + 4*(4*fH+2*fD) + flashState,
		},
		{"gpt2", `{"model_type":"gpt2","n_embd":768,"n_layer":LAYERS,"n_head":12,"vocab_size":5000,"n_positions":2048}`, nil, n*(18*fH+10*4*fH+4*fQ+16) + flashState},
		{
			"bert", `{"model_type":"bert","hidden_size":768,"intermediate_size":2048,"num_hidden_layers":LAYERS,"num_attention_heads":12,"vocab_size":5000,"max_position_embeddings":2048}`,
			nil, n*(18*fH+4*fI+4*fQ+16) + flashState,
		},
		{
			"vit", `{"model_type":"vit","hidden_size":768,"intermediate_size":2048,"num_hidden_layers":LAYERS,"num_attention_heads":12,"image_size":224,"patch_size":16}`,
			nil, fB*(14*14+1)*(16*fH+4*fI+4*fQ+16) + flashState,
		},
		{
			// The usual formula lacks the copy of the attention's output, whose heads cuDNN
			// does not leave side by side if values are narrower than keys.
			"deepseek_v3, a dense layer", `{"model_type":"deepseek_v3",` + mla + `}`, func(j *model.Job) { j.Attention = model.CuDNN },
			n*(2*rms+swiglu+2*fH+(8*ql+4)+(8*kl+4)+2*2*nh*(dn+dr)+2*nh*(dn+dv)+2*nh*dv+4*nh) + n*2*nh*dv + cudnnState,
		},
		{
			"autocast over fp32 weights", decoderConfig("llama", ""), func(j *model.Job) { j.DType, j.Autocast = model.FP32, true },
			n*(26*fH+8*fI+4*fQ*fD+4*fKV*fD+4*fQ+8) + 2*linears + flashState, // with the casts of the weights
		},
		{"eager attention", decoderConfig("llama", ""), func(j *model.Job) { j.Attention = model.Eager }, decoder - 4*n*fQ + expanded + 6*fB*fQ*fS*fS},
		{
			"a mask", decoderConfig("llama", ""), func(j *model.Job) { j.Attention, j.Mask = model.Efficient, model.LeftMask },
			decoder + expanded + 2*fB*fS*fS,
		},
		{"full recompute", decoderConfig("llama", ""), func(j *model.Job) { j.Recompute.Mode = "full" }, 2 * n * fH},
		{
			// The usual formula leaves out logsumexp.
			"selective recompute", decoderConfig("llama", ""), func(j *model.Job) { j.Recompute.Mode = "selective" },
			n*(6*fH+4*fQ*fD+4*fKV*fD+4*fI) + 4*n*fQ + flashState,
		},
		{
			// Norms do not train, so they keep no normalised rows; each of the seven
			// Linears keeps what its adapter has between its two products.
			"LoRA in bf16", decoderConfig("llama", ""), func(j *model.Job) { j.LoRA.Rank = 16 },
			decoder - 2*2*n*fH + 7*2*16*n + flashState,
		},
	} {
		config := func(layers int) string {
			return strings.ReplaceAll(tt.config, "LISTED", `["full_attention"`+strings.Repeat(`,"full_attention"`, layers-1)+`]`)
		}
		more := kept(runJob(t, formulaJob(t, config(3), 3, tt.change)).Ledger)
		got := more - kept(runJob(t, formulaJob(t, config(2), 2, tt.change)).Ledger)
		if got != tt.want {
			t.Errorf("%s: a layer keeps %d bytes, the formula says %d: %+d, %+.2f a token", tt.name, got, tt.want, got-tt.want, float64(got-tt.want)/fN)
		}
	}
}
