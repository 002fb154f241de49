package hf_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// Every method runs on every family, trained and served, with and without
// recomputation: steps leave nothing behind, and weights take less than in bf16.
func TestQuantisedFamilies(t *testing.T) {
	for _, text := range smallModels {
		for _, name := range model.QuantNames {
			for _, mode := range []string{"none", "full", "selective"} {
				j := smallJob(t, text)
				j.Quant, j.LoRA, j.Recompute.Mode = model.NewQuant(name), model.LoRA{Rank: 4, DType: model.FP32}, mode
				j.Quant.Source = model.BF16
				if j.Quant.Method == model.FP8 || j.Quant.Method == model.MXFP4 {
					if mode != "none" || j.Model.Head != model.HeadCausal {
						continue
					}
					j.Mode, j.LoRA, j.Tokens = model.Generate, model.LoRA{}, 3
				}
				if j.Quant.Group > 0 {
					j.Quant.Group = 16
				}
				r, err := hf.Run(context.Background(), j)
				if err != nil {
					t.Errorf("%s, %s, recompute %s: %v", j.Model.Family, name, mode, err)
					continue
				}
				checkQuantised(t, j, r, name)
			}
		}
	}
}

func checkQuantised(t *testing.T, j *model.Job, r *hf.Result, name string) {
	t.Helper()
	var after []int64 // what is live at the ends of steps
	var live, weights int64
	next := 1
	for i, e := range r.Ledger.Events {
		if next < len(r.Ledger.Phases) && i == r.Ledger.Phases[next].First {
			if p := r.Ledger.Phases[next]; p.Name == ledger.Forward || p.Name == ledger.Decode {
				after = append(after, live)
			}
			next++
		}
		n := int64(1)
		if e < 0 {
			n, e = -1, ^e
		}
		live += n * r.Ledger.Tensors[e].Bytes
		if r.Ledger.Tensors[e].Kind == ledger.Weight {
			weights += n * r.Ledger.Tensors[e].Bytes
		}
	}
	if j.Mode == model.Train && after[len(after)-1] != after[len(after)-2] {
		t.Errorf("%s, %s, recompute %s: steps begin with %d", j.Model.Family, name, j.Recompute.Mode, after)
	}
	plain := *j
	plain.Quant = nil
	p, err := hf.Run(context.Background(), &plain)
	if err != nil {
		t.Fatal(err)
	}
	var unquantised int64
	for i := range p.Ledger.Tensors {
		if x := &p.Ledger.Tensors[i]; x.Kind == ledger.Weight && x.Death == ledger.Lives {
			unquantised += x.Bytes
		}
	}
	changes := true
	switch j.Model.Family {
	case "gpt2":
		changes = j.Quant.TakesConv1D()
	case "gpt_oss":
	default:
		changes = name != "mxfp4"
	}
	if changes != (weights < unquantised) {
		t.Errorf("%s, %s: weights take %d, unquantised %d", j.Model.Family, name, weights, unquantised)
	}
}

// A dequantised weight of 4 bits is there during its product alone, and the
// eight bits of an input are not kept for the backward pass.
func TestDequantisedIsTransient(t *testing.T) {
	for _, name := range []string{"nf4", "nf4-double", "int8", "awq"} {
		j := smallJob(t, smallModels[0])
		j.Quant, j.LoRA = model.NewQuant(name), model.LoRA{Rank: 4, DType: model.FP32}
		j.Quant.Source = model.BF16
		if j.Quant.Group > 0 {
			j.Quant.Group = 16
		}
		r, err := hf.Run(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for i := range r.Ledger.Tensors {
			x := &r.Ledger.Tensors[i]
			switch r.Ledger.Text(x.Op) {
			case "dequantize_4bit", "awq_dequantize", "int8_vectorwise_quant":
				seen++
				if x.Death == ledger.Lives || x.Death-x.Birth > 13 {
					t.Errorf("%s: %s lives from %d to %d", name, r.Ledger.Text(x.Op), x.Birth, x.Death)
				}
			}
		}
		if seen < 4*7*3 {
			t.Errorf("%s: dequantised %d times", name, seen)
		}
	}
}

// PEFT casts the input of adapters to their type, fp32, but for autocast.
func TestAdaptersUnderAutocast(t *testing.T) {
	casts := func(autocast bool) (n int) {
		j := smallJob(t, smallModels[0])
		j.Quant, j.LoRA, j.Autocast = model.NewQuant("nf4"), model.LoRA{Rank: 4, DType: model.FP32}, autocast
		j.Quant.Source = model.BF16
		r, err := hf.Run(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Ledger.Tensors {
			x := &r.Ledger.Tensors[i]
			if r.Ledger.Text(x.Op) == "to" && strings.HasSuffix(r.Ledger.Text(x.Module), "up_proj") && x.Bytes == 4*2*64*64 && x.Kind == ledger.Activation {
				n++
			}
		}
		return n
	}
	if plain, auto := casts(false), casts(true); plain != 4*3 || auto != 0 { // layers times steps
		t.Errorf("%d inputs are cast, under autocast %d", plain, auto)
	}
}
