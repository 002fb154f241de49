package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// llama1b is a config that --serve takes.
const llama1b = "../../testdata/plan/llama-1b.json"

func TestPlanServe(t *testing.T) {
	for _, x := range []struct {
		args string
		exit int
		say  string
	}{
		{"--serve vllm --max-model-len 8192 --gpu l4", exitOK, "FITS: "},
		{"--serve vllm --max-model-len 8192", exitOK, " a request of 8,192 tokens fits."},
		{"--serve vllm --max-model-len 131072 --gpu 4GiB", exitBad, "DOES NOT FIT: a request of 131,072 tokens needs 4.00 GiB of cache"},
		{"--serve vllm --max-model-len 8192 --gpu 2GiB", exitBad, "is missing on 2GiB before the cache begins"},
		{"--serve hf --max-model-len 2048 --gpu l4", exitOK, "FITS: a batch of "},
		{"--serve vllm --max-model-len 8192 --gpu l4 --batch 8", exitInput, "--batch does nothing with --serve vllm"},
		{"--serve vllm --max-model-len 8192 --gpu l4 --lora 8", exitInput, "--lora does nothing with --serve vllm"},
		{"--serve vllm --max-model-len 8192 --gpu l4 --quant awq --dtype fp16", exitOK, "FITS: "},
		{"--serve vllm --max-model-len 8192 --compare l4,h100", exitInput, "--compare does nothing"},
		{"--serve hf --max-model-len 2048 --gpu l4 --tp 2", exitInput, "--tp does nothing with --serve hf"},
		{"--serve hf --max-model-len 2048 --gpu l4 --attention eager", exitOK, "FITS: "},
		{"--serve vllm --max-model-len 8192 --gpu l4 --quant mxfp4", exitInput, "experts of gpt_oss"},
		{"--serve vllm --max-model-len 8192 --gpu l4 --vllm 0.99", exitOK, "planned as 0.27.1"},
		{"--serve vllm", exitInput, "--max-model-len is missing"},
		{"--serve vlm --max-model-len 1", exitInput, "did you mean vllm?"},
		{"--serve vllm --max-model-len 8192 --kv-dtype int3", exitInput, "write auto or fp8"},
		{"--serve vllm --max-model-len 8192 --gpu-memory-utilization 2", exitInput, "at most 1"},
		{"--serve vllm --max-model-len 8192 --tp 0", exitInput, "--tp 0: it must be at least 1"},
		{"--serve vllm --max-model-len 8192 --vllm 0.1", exitInput, "older than 0.2.5"},
		{"--serve hf --max-model-len 8192", exitInput, "needs --gpu"},
		{"--max-num-seqs 8 --batch 1 --seq 8", exitInput, "--max-num-seqs is for a server: give --serve vllm too"},
	} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), stdio{out: &out, err: &errs}, append([]string{"plan", llama1b}, strings.Fields(x.args)...))
		if said := out.String() + errs.String(); code != x.exit || !strings.Contains(said, x.say) {
			t.Errorf("%s: exit %d, want %d and %q in\n%s", x.args, code, x.exit, x.say, said)
		}
	}
}

func TestPlanServeJSON(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"plan", llama1b, "--serve", "vllm", "--max-model-len", "8192", "--gpu", "l4", "--vllm", "0.20.0", "--json"}
	if code := execute(t.Context(), stdio{out: &out, err: &errs}, args); code != exitOK {
		t.Fatal(errs.String())
	}
	var a struct {
		Utilization float64 `json:"gpu_memory_utilization"`
		Usable      int64   `json:"usable_bytes"`
		Available   int64   `json:"available_kv_cache_bytes"`
		Parts       []struct {
			Name     string
			Bytes    int64
			Measured *bool
			Source   string
		}
	}
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	left, graphs := a.Usable, false
	for _, p := range a.Parts {
		left -= p.Bytes
		graphs = graphs || p.Name == "CUDA graphs"
		if p.Measured == nil || *p.Measured || p.Source == "" {
			t.Errorf("%s is not marked as unmeasured with its source", p.Name)
		}
	}
	if a.Utilization != 0.92 || left != a.Available || !graphs {
		t.Errorf("0.20.0: share %g, %d bytes left of %d expected, graphs %v", a.Utilization, a.Available, left, graphs)
	}
}
