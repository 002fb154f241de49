package plan

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/settings"
)

// toyConfig is a small llama for tests that need a model but no plan of it.
const toyConfig = `{"model_type": "llama", "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8,
 "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 32000, "tie_word_embeddings": false, "dtype": "bfloat16"}`

func toyModel(t testing.TB) *model.Model {
	t.Helper()
	m, err := model.Read(strings.NewReader(toyConfig))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// options sets options by name and value.
func options(t testing.TB, pairs ...string) Options {
	t.Helper()
	var o Options
	for i := 0; i < len(pairs); i += 2 {
		if err := o.Set(pairs[i], pairs[i+1]); err != nil {
			t.Fatalf("%s %s: %v", pairs[i], pairs[i+1], err)
		}
	}
	return o
}

// question is about the toy model run by hand instead of by a preset.
func question(t testing.TB, pairs ...string) Question {
	t.Helper()
	return Question{Model: toyModel(t), Options: options(t, pairs...), Settings: settings.Default(), execute: byHand}
}

func gpuOf(t testing.TB, name string) *cards.Card {
	t.Helper()
	c, err := cards.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// hand writes a ledger as a small training loop would: weights, three steps with
// saved activations, a loss, gradients and Adam's state.
type hand struct {
	l        *ledger.Ledger
	j        *model.Job
	weights  []int32
	state    []int32
	perLayer int64 // saved by a layer
}

func byHand(_ context.Context, j *model.Job) (*executed, error) {
	h := &hand{l: ledger.New(), j: j, perLayer: j.Batch * j.Seq * int64(j.Model.Hidden) * 30}
	h.l.Begin(ledger.Build, 0)
	weight := int64(j.Model.Hidden) * int64(j.Model.Hidden) * 24
	for i := range j.Model.Layers {
		h.weights = append(h.weights, h.alloc("parameter", fmt.Sprintf("model.layers.%d.weight", i), ledger.Weight, weight))
	}
	for step := range 3 {
		h.step(step + 1)
	}
	return &executed{ledger: h.l, parameters: weight / 2 * int64(j.Model.Layers), notModelled: []string{"everything but a toy"}}, nil
}

func (h *hand) alloc(op, module string, kind ledger.Kind, bytes int64) int32 {
	return h.l.Alloc(ledger.Tensor{Bytes: bytes, Op: h.l.Name(op), Module: h.l.Name(module), Kind: kind})
}

// layers are whether each layer is recomputed.
func (h *hand) layers() []bool {
	out := make([]bool, h.j.Model.Layers)
	r := h.j.Recompute
	at := 0
	for _, k := range r.Groups {
		for i := at; i < at+k; i++ {
			out[i] = true
		}
		at += max(k, -k)
	}
	for i := range out {
		out[i] = out[i] || r.Mode == "full"
	}
	return out
}

func (h *hand) step(n int) {
	j := h.j
	again := h.layers()
	hidden := j.Batch * j.Seq * int64(j.Model.Hidden) * 2
	logits := j.Batch * j.Seq * int64(j.Model.Vocab) * 2
	if j.LossChunk > 0 {
		logits = min(logits, j.LossChunk*int64(j.Model.Vocab)*2)
	}
	grads := make([]int32, len(h.weights))
	for range max(j.Accumulate, 1) {
		h.l.Begin(ledger.Forward, n)
		ids := h.alloc("randint", "", ledger.Input, j.Batch*j.Seq*8)
		var saved [][]int32
		for i := range h.weights {
			in := h.alloc("add", fmt.Sprintf("model.layers.%d", i), ledger.Temporary, hidden)
			kept := []int32{in}
			work := h.alloc("mm", fmt.Sprintf("model.layers.%d.mlp", i), ledger.Temporary, h.perLayer)
			if again[i] {
				h.l.Free(work)
			} else {
				kept = append(kept, work)
			}
			saved = append(saved, kept)
		}
		h.l.Begin(ledger.LossPhase, n)
		loss := h.alloc("log_softmax", "lm_head", ledger.Loss, logits)
		h.l.Begin(ledger.Backward, n)
		spike := h.alloc("log_softmax_backward", "lm_head", ledger.Loss, logits)
		h.l.Free(loss)
		h.l.Free(spike)
		for i := len(saved) - 1; i >= 0; i-- {
			if again[i] {
				h.l.Free(h.alloc("mm", fmt.Sprintf("model.layers.%d.mlp", i), ledger.Temporary, h.perLayer))
			}
			if grads[i] == 0 {
				grads[i] = h.alloc("mm", fmt.Sprintf("model.layers.%d.weight", i), ledger.Gradient, h.l.Tensors[h.weights[i]].Bytes)
			}
			for _, t := range saved[i] {
				h.l.Free(t)
			}
		}
		h.l.Free(ids)
	}
	h.l.Begin(ledger.Step, n)
	for i, w := range h.weights {
		bytes := h.l.Tensors[w].Bytes
		if n == 1 {
			h.state = append(h.state, h.alloc("zeros_like", fmt.Sprintf("model.layers.%d.weight", i), ledger.Optimizer, 2*bytes))
		}
		if j.Optimizer == model.AdamWForeach {
			h.l.Free(h.alloc("_foreach_sqrt", "", ledger.Temporary, bytes))
		}
	}
	for _, g := range grads {
		h.l.Free(g)
	}
}

// under is a question with other settings of the allocator.
func under(t testing.TB, q Question, conf string) Question {
	t.Helper()
	s, err := settings.Parse(conf)
	if err != nil {
		t.Fatal(err)
	}
	q.Settings, q.Conf = s, conf
	return q
}
