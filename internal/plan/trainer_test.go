package plan

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// trainerQwen is the model of recordings/trainer-peft.
const trainerQwen = `{"model_type": "qwen2", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 10, "num_attention_heads": 16, "num_key_value_heads": 4,
	"vocab_size": 40000, "dtype": "bfloat16"}`

// A recording of Trainer with PEFT's adapters, bf16 and gradient checkpointing is
// planned to the byte.
func TestTrainerIsPlanned(t *testing.T) {
	dir, err := plancompare.Folder()
	if err != nil {
		t.Fatal(err)
	}
	f, err := snapshot.Open(t.Context(), filepath.Join(dir, "recordings", "trainer-peft.pickle.gz"), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := Question{Model: readModel(t, trainerQwen), Settings: settings.Default(), NoLevers: true, Options: options(t,
		"batch", "6", "seq", "640", "autocast", "true", "dtype", "bf16", "clip", "true", "recompute", "full", "mask", "ones", "loop", "trainer", "lora", "8", "lora-targets", "q_proj,v_proj")}
	c, err := Compare(t.Context(), q, run.New(f.Traces[0], nil), 50)
	if err != nil {
		t.Fatal(err)
	}
	if c.Covered != 1 || c.Extra != 0 || c.Missing != 0 || c.To != "optimizer 4" {
		t.Errorf("%.4f covered to %s, %d missing, %d extra", c.Covered, c.To, c.Missing, c.Extra)
	}
	for _, p := range c.Peaks {
		if p.Measured == nil || *p.Measured != p.Planned {
			t.Errorf("%s: %d planned, %d measured", p.Name, p.Planned, p.Measured)
		}
	}
}

const trainerBert = `{"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 30522}`

// peakOf plans a run of Trainer.
func peakOf(t *testing.T, config string, pairs ...string) *Answer {
	t.Helper()
	q := Question{Model: readModel(t, config), Settings: settings.Default(), NoLevers: true, Options: options(t, append([]string{"batch", "8", "seq", "256"}, pairs...)...)}
	a, err := Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// accelerate's copy of the logits in fp32 is the peak of a masked language model
// under autocast: logits in bf16, their softmax in bf16 and in fp32, and the copy.
func TestTrainerCopiesOutputs(t *testing.T) {
	const logits = 8 * 256 * 30522
	plain := peakOf(t, trainerBert, "autocast", "true", "dtype", "fp32")
	wrapped := peakOf(t, trainerBert, "autocast", "true", "dtype", "fp32", "loop", "trainer")
	if more := float64(wrapped.PeakRequested) - float64(plain.PeakRequested); more < 1.9*logits || more > 2.1*logits {
		t.Errorf("%.0f more than a loop without accelerate, want about %d", more, 2*logits)
	}
	if wrapped.BindingPhase != "loss" {
		t.Errorf("the peak is in %s", wrapped.BindingPhase)
	}
}

// What Trainer's arguments add.
func TestTrainerArguments(t *testing.T) {
	const logits = 4 * 8 * 256 * 30522 // in fp32
	bare := peakOf(t, trainerBert, "dtype", "fp32", "loop", "trainer")
	for _, tt := range []struct {
		pairs       string
		least, most float64 // of logits more
	}{
		{"eval-batch 8", 0, 0},                         // no gradients, so less than training takes
		{"eval-batch 8 eval-keep 4", 1, 9},             // four batches, and the sum while they are joined
		{"accumulate 4", 0, 1},                         // the gradients of the parts before
		{"label-smoothing true", -0.1, 1},              // its gradients are as large as those of a plain loss
		{"optimizer adafactor", -1, 0.01},              // means instead of moments
		{"clip true", 0, 0.001},                        // some scalars
		{"mask right", -1, 1},                          // another kernel
		{"eval-batch 64 eval-keep 1 mask ones", 8, 40}, // evaluation is the peak
	} {
		a := peakOf(t, trainerBert, append([]string{"dtype", "fp32", "loop", "trainer"}, strings.Fields(tt.pairs)...)...)
		if more := (float64(a.PeakRequested) - float64(bare.PeakRequested)) / logits; more < tt.least || more > tt.most {
			t.Errorf("%s: %.3f times the logits more", tt.pairs, more)
		}
	}
}

// The cache is emptied in the steps that torch_empty_cache_steps divides, and after
// each part of an evaluation.
func TestTrainerEmptiesTheCache(t *testing.T) {
	for pairs, want := range map[string]int{"empty-cache 2": 2, "empty-cache 1": 3, "eval-batch 4 eval-keep 6 eval-accumulation 2": 9} {
		j, _, err := options(t, append([]string{"batch", "2", "seq", "64", "loop", "trainer"}, strings.Fields(pairs)...)...).Job(readModel(t, trainerBert))
		if err != nil {
			t.Fatal(err)
		}
		r, err := preset517(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		for _, e := range r.ledger.Events {
			if e == ledger.EmptyCache {
				calls++
			}
		}
		if calls != want {
			t.Errorf("%s: %d calls, want %d", pairs, calls, want)
		}
	}
	kept := peakOf(t, trainerBert, "loop", "trainer", "eval-batch", "8", "eval-keep", "6")
	moved := peakOf(t, trainerBert, "loop", "trainer", "eval-batch", "8", "eval-keep", "6", "eval-accumulation", "2")
	if moved.PeakRequested >= kept.PeakRequested {
		t.Errorf("%d requested if outputs are moved, %d if not", moved.PeakRequested, kept.PeakRequested)
	}
}

// Without checkpoints nothing before the first adapter of PEFT needs a gradient; the
// adapters are in fp32, which is said.
func TestPEFT(t *testing.T) {
	m := readModel(t, trainerQwen)
	j, assumed, err := options(t, "batch", "2", "seq", "64", "lora", "8").Job(m)
	if err != nil || !j.LoRA.PEFT || j.LoRA.DType != model.FP32 || !strings.Contains(strings.Join(assumed, "\n"), "--lora-dtype fp32: PEFT makes adapters in fp32") {
		t.Errorf("%+v, %q, %v", j, assumed, err)
	}
	j, _, err = options(t, "batch", "2", "seq", "64", "lora", "8", "lora-as", "plain").Job(m)
	if err != nil || j.LoRA.PEFT || j.LoRA.DType != "" {
		t.Errorf("%+v, %v", j, err)
	}
	fp32 := peakOf(t, trainerQwen, "lora", "8").PeakRequested
	dropped := peakOf(t, trainerQwen, "lora", "8", "lora-dropout", "true").PeakRequested
	if dropped <= fp32 {
		t.Errorf("%d with dropout, %d without", dropped, fp32)
	}
}

// The third step of Trainer is like the second, batches that are held included.
func TestTrainerRepeats(t *testing.T) {
	for _, pairs := range []string{"clip true", "accumulate 3 autocast true", "eval-batch 4 eval-keep 2", "optimizer adafactor", "label-smoothing true", "recompute full lora 4"} {
		j, _, err := options(t, append([]string{"batch", "2", "seq", "64", "loop", "trainer"}, strings.Fields(pairs)...)...).Job(readModel(t, trainerQwen))
		if err != nil {
			t.Fatal(err)
		}
		three, err := hf.Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		j.Steps = 2
		two, err := hf.Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if !two.Ledger.Repeat() {
			t.Errorf("%s does not repeat", pairs)
		} else if diff := differ(three.Ledger, two.Ledger); diff != "" {
			t.Errorf("%s: %s", pairs, diff)
		}
	}
}

func TestLoopRefusals(t *testing.T) {
	for _, tt := range []struct{ pairs, want string }{
		{"label-smoothing true", "label-smoothing is for loop trainer-5.17"},
		{"eval-batch 4", "eval-batch is for loop trainer-5.17"},
		{"loop trainer eval-keep 4", "eval-keep needs eval-batch B"},
		{"loop trainer hold-output true", "hold-output is a habit of other loops"},
		{"loop trainer label-smoothing true loss chunked:64", "label-smoothing needs all logits"},
		{"loop trainer shard pp:2", "give loop plain"},
		{"lora-dropout true", "lora-dropout needs lora R"},
		{"lora 8 lora-as plain lora-dropout true", "lora-dropout is for PEFT's adapters"},
	} {
		_, _, err := options(t, append([]string{"batch", "2", "seq", "64"}, strings.Fields(tt.pairs)...)...).Job(readModel(t, trainerQwen))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.pairs, err, tt.want)
		}
	}
}
