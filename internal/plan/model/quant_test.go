package model

import (
	"fmt"
	"strings"
	"testing"
)

// bytesOf is what a Linear takes.
func bytesOf(q *Quant, in, out int64) uint64 {
	var n uint64
	for _, t := range q.Tensors(in, out) {
		n += t.Bytes
	}
	return n
}

// Sizes are those of the arithmetic in the libraries' sources.
func TestTensorsOfALinear(t *testing.T) {
	const in, out = 4096, 14336
	const n = in * out
	for name, want := range map[string]uint64{
		"nf4":        n/2 + 4*n/64 + 16*4,
		"nf4-double": n/2 + n/64 + 4*n/64/256 + 256*4 + 16*4 + 4,
		"fp4":        n/2 + 4*n/64 + 16*4,
		"int8":       n + 4*out,
		"awq":        n/2 + in/128*out/2 + 2*in/128*out,
		"gptq":       n/2 + in/128*out/2 + 2*in/128*out + 4*in,
		"fp8":        n + 4*(in/128)*(out/128),
		"fp8-tensor": n + 4,
	} {
		if got := bytesOf(NewQuant(name), in, out); got != want {
			t.Errorf("%s: %d bytes, want %d", name, got, want)
		}
	}
	for _, name := range QuantNames {
		if q := NewQuant(name); q == nil || q.String() != name {
			t.Errorf("%s: %v", name, q)
		}
	}
	// Shapes that do not divide evenly.
	if got := bytesOf(NewQuant("nf4"), 3, 21); got != 32+4+64 {
		t.Errorf("63 weights in nf4: %d bytes", got)
	}
	if got := bytesOf(&Quant{Method: GPTQ, Bits: 3, Group: 64}, 100, 10); got != 4*10*10+4*2*1+2*2*10+4*100 {
		t.Errorf("gptq in 3 bits: %d bytes", got)
	}
	if got := bytesOf(NewQuant("fp8"), 130, 200); got != 130*200+4*2*2 {
		t.Errorf("fp8 with blocks that are not full: %d bytes", got)
	}
}

// The shapes that somebody printed of a gemma 3 1B in nf4:
// https://github.com/google/gemma.cpp/issues/533
func TestPublishedShapes(t *testing.T) {
	for _, c := range []struct{ in, out, packed, scales int64 }{
		{1152, 6912, 3981312, 124416}, // up_proj, gate_proj
		{1152, 256, 147456, 4608},     // k_proj
		{1024, 1152, 589824, 18432},   // o_proj
	} {
		got := NewQuant("nf4").Tensors(c.in, c.out)
		if fmt.Sprint(got[0].Shape) != fmt.Sprintf("[%d 1]", c.packed) || got[1].Shape[0] != c.scales || got[2].Shape[0] != 16 {
			t.Errorf("%dx%d: %+v", c.out, c.in, got)
		}
	}
}

// What stays unquantised follows should_convert_module of transformers.
func TestConverts(t *testing.T) {
	for _, c := range []struct {
		skip   []string
		method QuantMethod
		module string
		want   bool
	}{
		{nil, NF4, "model.layers.0.self_attn.q_proj", true},
		{nil, NF4, "lm_head", false},
		{[]string{"q_proj"}, NF4, "model.layers.0.self_attn.q_proj", false},
		{[]string{"q_proj"}, NF4, "lm_head", true}, // a list replaces the default,
		{[]string{"q_proj"}, AWQ, "lm_head", false},
		{[]string{"model.layers.1"}, FP8, "model.layers.1.mlp.up_proj", false},
		{[]string{"model.layers.1"}, FP8, "model.layers.10.mlp.up_proj", false}, // as in transformers: a beginning
		{[]string{"model.layers.1"}, FP8, "model.layers.2.mlp.up_proj", true},
		{[]string{"model.layers.*.self_attn"}, FP8, "model.layers.7.self_attn.k_proj", false},
		{[]string{"re:.*lm_head"}, Compressed, "model.lm_head", false},
		{[]string{"("}, FP8, "model.layers.0.mlp.up_proj", true}, // no expression
		{nil, GPTQ, "lm_head", false},
		{nil, MXFP4, "model.layers.0.self_attn.q_proj", false},
	} {
		q := &Quant{Method: c.method, Skip: c.skip}
		if got := q.Converts(c.module); got != c.want {
			t.Errorf("%s, skipping %q: converts %s: %v", c.method, c.skip, c.module, got)
		}
	}
}

func TestQuantizationConfig(t *testing.T) {
	for text, want := range map[string]Quant{
		`{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4","bnb_4bit_use_double_quant":true,"bnb_4bit_compute_dtype":"bfloat16"}`: {Method: NF4, Double: true, Compute: BF16},
		`{"load_in_4bit":true}`: {Method: FP4, Compute: FP32},
		`{"quant_method":"bitsandbytes","load_in_8bit":true,"llm_int8_threshold":0.0,"llm_int8_skip_modules":["lm_head"]}`: {Method: Int8, Skip: []string{"lm_head"}},
		`{"quant_method":"awq","bits":4,"group_size":64,"version":"gemm","modules_to_not_convert":null}`:                   {Method: AWQ, Bits: 4, Group: 64},
		`{"quant_method":"gptq","bits":8,"group_size":-1,"desc_act":true}`:                                                 {Method: GPTQ, Bits: 8},
		`{"quant_method":"fp8","weight_block_size":[128,128],"activation_scheme":"dynamic"}`:                               {Method: FP8, Block: [2]int{128, 128}},
		`{"quant_method":"fp8"}`: {Method: FP8, Block: [2]int{128, 128}},
		`{"quant_method":"fp8","weight_block_size":null,"activation_scheme":"static"}`: {Method: FP8, StaticInputs: true},
		`{"quant_method":"mxfp4","modules_to_not_convert":["lm_head"]}`:                {Method: MXFP4, Skip: []string{"lm_head"}},
		`{"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,"type":"int","strategy":"group","group_size":128,"symmetric":true}}},"ignore":["lm_head"]}`: {Method: Compressed, Bits: 4, Group: 128, Symmetric: true, Skip: []string{"lm_head"}},
	} {
		want.Stored = true
		m, err := Read(strings.NewReader(`{"model_type":"llama","quantization_config":` + text + `}`))
		if err != nil || m.Quant == nil || fmt.Sprintf("%+v", *m.Quant) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %+v, %v; want %+v", text, m.Quant, err, want)
		}
	}
	for _, text := range []string{`{"quant_method":"quip"}`, `{"quant_method":"fp8","dequantize":true}`, `{"bits":4}`} {
		m, err := Read(strings.NewReader(`{"model_type":"llama","quantization_config":` + text + `}`))
		if err != nil || m.Quant != nil || m.Quantised == "" {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
}
