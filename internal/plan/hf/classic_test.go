package hf_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

func classic(t *testing.T, text string, change func(*model.Job)) (*hf.Result, error) {
	t.Helper()
	m, err := model.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	j := &model.Job{Model: m, Mode: model.Train, Batch: 2, Seq: 16, TargetSeq: 8, DType: model.BF16, Attention: model.SDPA}
	if change != nil {
		change(j)
	}
	return hf.Run(context.Background(), j)
}

const (
	tinyBert = `{"model_type":"bert","num_hidden_layers":2,"hidden_size":64,"intermediate_size":96,"num_attention_heads":4,"vocab_size":50}`
	tinyT5   = `{"model_type":"t5","num_layers":3,"num_decoder_layers":2,"d_model":64,"d_ff":96,"num_heads":4,"d_kv":16,"vocab_size":50}`
	tinyViT  = `{"model_type":"vit","num_hidden_layers":2,"hidden_size":64,"intermediate_size":96,"num_attention_heads":4,"image_size":32,"patch_size":16}`
	tinyGPT2 = `{"model_type":"gpt2","n_layer":2,"n_embd":64,"n_head":4,"vocab_size":50,"n_positions":64}`
)

func TestNoHead(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{strings.Replace(tinyBert, "{", `{"architectures":["BertModel"],`, 1), "has no head"},
		{strings.Replace(tinyT5, "{", `{"architectures":["T5Model"],`, 1), "has no head"},
		{strings.Replace(tinyViT, "{", `{"num_labels":0,`, 1), "num_labels is 0"},
	} {
		if _, err := classic(t, c.text, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.text, err, c.want)
		}
	}
}

// The layers of a group are recomputed together. The blocks of t5 share a bias
// that the first one makes, in the first run as in the second.
func TestGroupsOfBlocks(t *testing.T) {
	for _, text := range []string{tinyBert, tinyT5, tinyViT, tinyGPT2} {
		for _, groups := range [][]int{{2, 1}, {-1, 2}, {1, 1, 1}} {
			r, err := classic(t, text, func(j *model.Job) { j.Recompute = model.Recompute{Mode: "group", Groups: groups} })
			if err != nil {
				t.Fatal(err)
			}
			// Nothing of a step is left when the next one begins.
			if a, b := alive(r.Ledger, 2), alive(r.Ledger, 3); a != b {
				t.Errorf("%s in groups %v: %d bytes before step 2 are %d before step 3", text, groups, a, b)
			}
		}
	}
}

// alive is what is allocated when a step begins.
func alive(l *ledger.Ledger, step int) (bytes int64) {
	i := slices.IndexFunc(l.Phases, func(p ledger.Phase) bool { return p.Step == step })
	for _, e := range l.Events[:l.Phases[i].First] {
		if e >= 0 {
			bytes += l.Tensors[e].Bytes
		} else {
			bytes -= l.Tensors[^e].Bytes
		}
	}
	return bytes
}

// Adapters go around a Conv1D as around a Linear, and not around heads.
func TestAdaptersOfClassics(t *testing.T) {
	for text, want := range map[string]int64{
		tinyGPT2: 2 * 4 * ((64 + 192) + (64 + 64) + (64 + 256) + (256 + 64)),
		tinyViT:  2 * 4 * (4*(64+64) + 2*(64+96)),
		tinyBert: 2*4*(4*(64+64)+2*(64+96)) + 4*(64+64),
	} {
		plain, err := classic(t, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := classic(t, text, func(j *model.Job) { j.LoRA.Rank = 4 })
		if err != nil {
			t.Fatal(err)
		}
		weights := func(r *hf.Result) (bytes int64) {
			for _, x := range r.Ledger.Tensors {
				if x.Kind == ledger.Weight {
					bytes += x.Bytes
				}
			}
			return bytes
		}
		if got := weights(r) - weights(plain); got != 2*want {
			t.Errorf("%s: adapters of %d bytes, want %d", text, got, 2*want)
		}
	}
}

// In fp16 the residual stream of t5 is clamped, and from_pretrained would leave
// some weights in fp32: that is said.
func TestHalfT5(t *testing.T) {
	r, err := classic(t, tinyT5, func(j *model.Job) { j.DType = model.FP16 })
	if err != nil {
		t.Fatal(err)
	}
	if len(r.NotModelled) != 1 || !strings.Contains(r.NotModelled[0], "wo in fp32") {
		t.Errorf("not modelled: %q", r.NotModelled)
	}
}
