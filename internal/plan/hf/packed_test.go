package hf

import (
	"context"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// weightBytes is what the weights of a model take that is loaded quantised.
func weightBytes(t *testing.T, config string, q *model.Quant) int64 {
	t.Helper()
	m, err := model.Read(strings.NewReader(config))
	if err != nil {
		t.Fatal(err)
	}
	if q == nil {
		q = m.Quant
	}
	q.Source = model.BF16
	r := newRun(context.Background(), &model.Job{Model: m, Mode: model.Generate, Batch: 1, Seq: 1, DType: model.BF16, Attention: model.Eager, Quant: q})
	families[m.Family](r)
	var n int64
	for _, p := range r.params {
		switch {
		case p.Tied:
		case p.Packed != nil:
			for _, t := range p.Packed {
				n += t.Bytes()
			}
		default:
			n += p.Tensor.Bytes()
		}
	}
	return n
}

// Weights are as large as the tensors of published checkpoints, by total_size in
// their model.safetensors.index.json.
func TestPublishedCheckpoints(t *testing.T) {
	const deepseek = `{"model_type":"deepseek_v3","dtype":"bfloat16","vocab_size":129280,"hidden_size":7168,"intermediate_size":18432,
		"moe_intermediate_size":2048,"num_hidden_layers":61,"num_attention_heads":128,"num_key_value_heads":128,"n_shared_experts":1,
		"n_routed_experts":256,"num_experts_per_tok":8,"n_group":8,"topk_group":4,"first_k_dense_replace":3,"q_lora_rank":1536,"kv_lora_rank":512,
		"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"tie_word_embeddings":false,"quantization_config":`
	for _, c := range []struct {
		name, config string
		want, other  int64 // other: what the file has beside the weights
	}{
		{
			// https://huggingface.co/openai/gpt-oss-20b
			"gpt-oss-20b", `{"model_type":"gpt_oss","dtype":"bfloat16","hidden_size":2880,"intermediate_size":2880,"num_hidden_layers":24,
			"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"num_local_experts":32,"num_experts_per_tok":4,"vocab_size":201088,
			"tie_word_embeddings":false,"attention_bias":true,"quantization_config":{"quant_method":"mxfp4",
			"modules_to_not_convert":["model.layers.*.self_attn","model.layers.*.mlp.router","model.embed_tokens","lm_head"]}}`,
			13_761_264_768, 0,
		},
		{
			// https://github.com/kvcache-ai/sglang_awq; the routers' corrections are buffers
			"DeepSeek V3 in AWQ", deepseek + `{"quant_method":"awq","bits":4,"group_size":64}}`, 364_589_799_936, 58 * 256 * 2,
		},
	} {
		if got := weightBytes(t, c.config, nil); got != c.want-c.other {
			t.Errorf("%s: %d bytes, the checkpoint has %d", c.name, got, c.want-c.other)
		}
	}
	// The files of DeepSeek V3 in fp8 have 688,586,727,753 bytes. Of them 15,424,227,552 are those of
	// the layer for another objective, 58*256*4 the routers' corrections, and the rest headers: 91,991
	// entries of about 129 bytes.
	headers := 688_586_727_753 - 15_424_227_552 - 58*256*4 - weightBytes(t, deepseek+`{"quant_method":"fp8","weight_block_size":[128,128]}}`, nil)
	if headers != 11_888_393 {
		t.Errorf("DeepSeek V3 in fp8: %d bytes are left for headers", headers)
	}
}

// States are those of Optimizer2State and Optimizer1State of bitsandbytes.
func TestStatesOfBitsAndBytes(t *testing.T) {
	type size struct{ state, managed int64 }
	const large, small, tiny = 300 * 500, 300 * 100, 4095 // paged, not paged, never in 8 bits
	const scales = 4 * ((large+255)/256 + (small+255)/256)
	for o, want := range map[model.Optimizer]size{
		model.AdamW8bit:       {2 * (large + small + scales + 4*256 + 4*tiny), 0},
		model.PagedAdamW8bit:  {2 * (small + scales + 4*256 + 4*tiny), 2 * large},
		model.PagedAdamW32bit: {2 * 4 * (small + tiny), 2 * 4 * large},
		model.Lion8bit:        {large + small + scales + 4*256 + 4*tiny, 0},
		model.Lion32bit:       {4 * (large + small + tiny), 0},
		model.PagedLion8bit:   {small + scales + 4*256 + 4*tiny, large},
		model.PagedLion32bit:  {4 * (small + tiny), 4 * large},
		model.RMSprop8bit:     {large + small + scales + 4*256 + 4*tiny, 0},
		model.RMSprop32bit:    {4 * (large + small + tiny), 0},
	} {
		if !o.BitsAndBytes() {
			t.Errorf("%s is not bitsandbytes'", o)
		}
		r := newRun(context.Background(), &model.Job{Optimizer: o})
		m := r.machine
		var params []*eager.Tensor
		for _, shape := range [][]int64{{300, 500}, {300, 100}, {4095}} {
			p := m.Parameter(eager.BFloat16, true, shape...)
			p.SetGrad(m.Empty("grad", eager.BFloat16, shape...))
			params = append(params, p)
		}
		before := live(r)
		opt := optimizerOf(r, params)
		opt.step()
		got := size{state: live(r) - before}
		for _, b := range r.beside {
			got.managed += b.Bytes
		}
		opt.step()
		if got != want || live(r)-before != got.state {
			t.Errorf("%s: %+v, want %+v", o, got, want)
		}
	}
	// An embedding keeps states of 32 bits.
	r := newRun(context.Background(), &model.Job{Optimizer: model.AdamW8bit})
	p := r.machine.Parameter(eager.BFloat16, true, 100, 100)
	p.SetGrad(r.machine.Empty("grad", eager.BFloat16, 100, 100))
	r.tables = []*eager.Tensor{p}
	before := live(r)
	optimizerOf(r, []*eager.Tensor{p}).step()
	if got := live(r) - before; got != 2*4*100*100 {
		t.Errorf("states of an embedding have %d bytes", got)
	}
}

// live is the bytes that are allocated.
func live(r *run) int64 {
	var n int64
	for _, e := range r.machine.Ledger.Events {
		if e >= 0 {
			n += r.machine.Ledger.Tensors[e].Bytes
		} else {
			n -= r.machine.Ledger.Tensors[^e].Bytes
		}
	}
	return n
}
