package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/checkpoint"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/settings"
)

// hidden is a measured case whose model_type nobody knows.
func hidden(t *testing.T, c *plancompare.BlindCase) (*checkpoint.Checkpoint, *model.Model, Options) {
	t.Helper()
	shape := maps.Clone(c.Spec["m"].(map[string]any))
	shape["model_type"] = "hidden"
	delete(shape, "fam")
	text, err := json.Marshal(shape)
	if err != nil {
		t.Fatal(err)
	}
	config, err := model.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Spec.Model()
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := c.Spec.Options()
	if err != nil {
		t.Fatal(err)
	}
	var o Options
	for _, p := range pairs {
		if err := o.Set(p[0], p[1]); err != nil {
			t.Fatal(err)
		}
	}
	return &checkpoint.Checkpoint{Class: "Hidden", Parts: []checkpoint.Part{{Class: "Hidden", Config: config}}}, m, o
}

// headers are what the files of a model would have.
func headers(t *testing.T, m *model.Model, o Options) []safetensors.Tensor {
	t.Helper()
	j, _, err := o.Job(m)
	if err != nil {
		t.Fatal(err)
	}
	run, err := preset517(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	var out []safetensors.Tensor
	for _, p := range run.weights {
		if !p.Tied {
			out = append(out, safetensors.New(p.Name, "BF16", p.Tensor.Shape()...))
		}
	}
	return out
}

// Runs that were measured lie within the rough plans that their models would have
// had if their family were not known, with headers and from the config alone.
func TestRoughBounds(t *testing.T) {
	all, err := plancompare.Blind()
	if err != nil {
		t.Fatal(err)
	}
	bounded := map[string]int{}
	for _, c := range all {
		if c.Limit > 0 || c.Spec.Conf() != "" {
			continue
		}
		for _, from := range []string{"headers", "config"} {
			part, m, o := hidden(t, &c)
			if from == "headers" {
				part.Parts[0].Tensors = headers(t, m, o)
			}
			a, err := AskRough(context.Background(), Question{Checkpoint: part, Options: o})
			if err != nil {
				if from == "headers" {
					t.Errorf("%s: %v", c.Name, err)
				}
				continue // without headers and sizes of a known kind
			}
			if from == "headers" && (a.Parameters != c.Params || a.ParametersLow != c.Params) {
				t.Errorf("%s: %d to %d parameters, measured %d", c.Name, a.ParametersLow, a.Parameters, c.Params)
			}
			if a.ParametersLow > c.Params || a.Low > c.PeakAllocated {
				t.Errorf("%s from %s: at least %d parameters and %d bytes, measured %d and %d", c.Name, from, a.ParametersLow, a.Low, c.Params, c.PeakAllocated)
			}
			if a.High == nil {
				continue
			}
			bounded[from]++
			if a.Parameters < c.Params-c.Params/1000 || *a.High < c.PeakReserved {
				t.Errorf("%s from %s: at most %d parameters and %d bytes, measured %d and %d", c.Name, from, a.Parameters, *a.High, c.Params, c.PeakReserved)
			}
			if a.Low < c.PeakAllocated/4 || *a.High > 3*c.PeakReserved {
				t.Errorf("%s from %s: from %d to %d bytes says nothing about %d", c.Name, from, a.Low, *a.High, c.PeakReserved)
			}
		}
	}
	if bounded["headers"] < 38 || bounded["config"] < 38 {
		t.Errorf("few cases have bounds: %v", bounded)
	}
}

// What does not depend on the batch is the same as in the plan of the family: to
// the byte, however it is trained.
func TestRoughState(t *testing.T) {
	const config = `{"model_type": "llama", "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": 3, "num_attention_heads": 4,
		"num_key_value_heads": 2, "vocab_size": 1500, "tie_word_embeddings": false, "dtype": "bfloat16"}`
	m := readModel(t, config)
	for _, pairs := range [][]string{
		{},
		{"dtype", "fp32"},
		{"optimizer", "adamw-foreach"},
		{"optimizer", "sgd-momentum"},
		{"optimizer", "adafactor"},
		{"optimizer", "adamw-8bit"},
		{"optimizer", "lion-8bit"},
		{"optimizer", "paged-adamw-8bit"},
		{"optimizer", "paged-adamw-32bit"},
		{"master-weights", "true"},
		{"lora", "8"},
		{"lora", "8", "lora-dtype", "fp32"},
		{"lora", "8", "lora-targets", "q_proj,v_proj"},
		{"quant", "nf4", "lora", "8"},
		{"quant", "nf4-double", "lora", "8"},
		{"quant", "int8", "lora", "8"},
		{"shard", "ddp:4"},
		{"shard", "fsdp:4"},
		{"shard", "fsdp-mixed:4", "dtype", "fp32"},
		{"shard", "zero1:4"},
		{"shard", "zero2:4"},
		{"shard", "zero3:4"},
		{"shard", "zero2:4", "offload", "optimizer"},
		{"shard", "fsdp:4", "offload", "params"},
	} {
		o := options(t, append([]string{"batch", "1", "seq", "8"}, pairs...)...)
		q := Question{Model: m, Options: o, Settings: settings.Default()}
		family, _, err := q.plan(t.Context(), o, 0)
		if err != nil {
			t.Fatalf("%v: %v", pairs, err)
		}
		c := &checkpoint.Checkpoint{Class: "Hidden", Parts: []checkpoint.Part{{Class: "Hidden", Tensors: headers(t, m, options(t, "batch", "1", "seq", "8"))}}}
		r, err := newRough(t.Context(), Question{Checkpoint: c, Options: o, Settings: settings.Default()})
		if err != nil {
			t.Fatalf("%v: %v", pairs, err)
		}
		bare, err := r.states(t.Context(), r.weights)
		if err != nil {
			t.Fatalf("%v: %v", pairs, err)
		}
		for _, k := range []ledger.Kind{ledger.Weight, ledger.Optimizer, ledger.Master} {
			if got, want := residentOf(bare.run.ledger, k), residentOf(family.run.ledger, k); got != want {
				t.Errorf("%v: %d bytes of %s, the family has %d", pairs, got, k, want)
			}
		}
		if got, want := fmt.Sprint(bare.run.beside), fmt.Sprint(family.run.beside); got != want {
			t.Errorf("%v: beside the allocator %s, the family has %s", pairs, got, want)
		}
	}
}

// residentOf is what there is of a kind when the scored step begins.
func residentOf(l *ledger.Ledger, k ledger.Kind) int64 {
	var n int64
	for i := range l.Tensors {
		if t := &l.Tensors[i]; t.Kind == k && t.Live(l.Scored()-1) {
			n += t.Bytes
		}
	}
	return n
}

// TestRoughTensors: so many tensors that the plan would take more memory than it may are refused.
func TestRoughTensors(t *testing.T) {
	many := checkpoint.Checkpoint{Class: "Odd", Parts: []checkpoint.Part{{Class: "Odd", Tensors: make([]safetensors.Tensor, mostTensors+1)}}}
	if _, err := AskRough(t.Context(), Question{Checkpoint: &many}); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Error(err)
	}
}

// Tensors of any shape and type are planned, however they are trained.
func TestRoughShapes(t *testing.T) {
	tensors := []safetensors.Tensor{
		safetensors.New("logit_scale", "F32"), safetensors.New("empty.weight", "F16", 0, 4), safetensors.New("a.weight", "F32", 40, 64), safetensors.New("a.bias", "F32", 40),
		safetensors.New("conv.weight", "BF16", 8, 4, 3, 3, 3), safetensors.New("deep.weight", "F32", 1, 2, 3, 1, 1, 2, 3), safetensors.New("wide", "F64", 5),
		safetensors.New("bn.running_mean", "F32", 9), safetensors.New("bn.num_batches_tracked", "I64"), safetensors.New("mask", "BOOL", 7),
	}
	for _, how := range []string{"none", "ddp:2", "ddp-view:2", "fsdp:3", "fsdp-mixed:3", "zero1:3", "zero2:3", "zero3:3"} {
		for _, optimizer := range optimizers {
			for _, more := range [][]string{{}, {"clip", "true"}, {"lora", "4"}, {"zero-grad", "keep"}, {"zero-grad", "before"}, {"mode", "generate"}} {
				pairs := more
				if !slices.Contains(more, "generate") {
					pairs = append([]string{"optimizer", string(optimizer), "shard", how}, more...)
				}
				c := &checkpoint.Checkpoint{Class: "Odd", Parts: []checkpoint.Part{{Class: "Odd", Tensors: tensors}}}
				a, err := AskRough(t.Context(), Question{Checkpoint: c, Options: options(t, pairs...)})
				if err != nil {
					t.Errorf("%v: %v", pairs, err)
					continue
				}
				if a.State == 0 || a.Low < a.State || a.High != nil || a.Parameters != 3501 {
					t.Errorf("%v: %d bytes of state, at least %d, %d parameters", pairs, a.State, a.Low, a.Parameters)
				}
			}
		}
	}
}
