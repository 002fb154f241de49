package attack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// settingKeys are those of PYTORCH_CUDA_ALLOC_CONF, with values that PyTorch takes.
var settingKeys = [][]string{
	{"large_segment_size_mb", "12", "32", "17592186044415"},
	{"max_split_size_mb", "20", "21", "200", "100000"},
	{"max_non_split_rounding_mb", "20", "64"},
	{"garbage_collection_threshold", "0.5", "0.999", "1e-9"},
	{"roundup_power2_divisions", "1", "8", "[256:1,512:2,1024:4,>:8]", "[>:0]"},
	{"expandable_segments", "True", "False"},
	{"pinned_use_background_threads", "True"},
	{"backend", "native", "cudaMallocAsync"},
	{"release_lock_on_cudamalloc", "True", "False"},
	{"release_lock_on_hipmalloc", "True"},
	{"pinned_use_cuda_host_register", "True"},
	{"pinned_num_register_threads", "1", "8", "128"},
	{"pinned_reserve_segment_size_mb", "1"},
	{"graph_capture_record_stream_reuse", "True"},
	{"per_process_memory_fraction", "0.1", "0.5", "1"},
}

// conf is a text of settings, most of them right.
func conf(r *rand.Rand) string {
	var all []string
	for range 1 + r.IntN(3) {
		key := settingKeys[r.IntN(len(settingKeys))]
		value := key[1+r.IntN(len(key)-1)]
		if r.IntN(8) == 0 {
			value = oddSize[r.IntN(len(oddSize))]
		}
		all = append(all, key[0]+":"+value)
	}
	text := strings.Join(all, ",")
	if r.IntN(12) == 0 {
		text = string(scramble(r, []byte(text)))
	}
	return strings.NewReplacer("\x00", "", "\n", " ").Replace(text) // as an argument has none
}

// config is a config.json of a model.
func config(r *rand.Rand) []byte {
	d := &Dict{}
	for _, f := range []struct {
		key   string
		value any
	}{
		{"architectures", &List{Items: []any{[]string{"LlamaForCausalLM", "GPT2LMHeadModel", "MixtralForCausalLM", "Odd"}[r.IntN(4)]}}},
		{"model_type", []string{"llama", "gpt2", "mixtral", "qwen2", "odd"}[r.IntN(5)]},
		{"vocab_size", int64(256)},
		{"hidden_size", int64(64)},
		{"intermediate_size", int64(128)},
		{"num_hidden_layers", int64(2)},
		{"num_attention_heads", int64(4)},
		{"num_key_value_heads", int64(2)},
		{"head_dim", int64(16)},
		{"hidden_act", "silu"},
		{"max_position_embeddings", int64(512)},
		{"tie_word_embeddings", true},
		{"num_local_experts", int64(4)},
		{"num_experts_per_tok", int64(2)},
		{"n_embd", int64(64)},
		{"n_layer", int64(2)},
		{"n_head", int64(4)},
		{"n_positions", int64(128)},
		{"rope_parameters", &Dict{}},
		{"dtype", "bfloat16"},
	} {
		d.Set(f.key, f.value)
	}
	if r.IntN(5) > 0 {
		mutate(r, d)
	}
	text := JSON(d)
	if r.IntN(6) == 0 {
		text = scramble(r, text)
	}
	return text
}

// weights is a safetensors file without its tensors.
func weights(r *rand.Rand) []byte {
	header := &Dict{}
	at := int64(0)
	for i := range 1 + r.IntN(5) {
		t := &Dict{}
		t.Set("dtype", []string{"F32", "BF16", "I64", "F8_E4M3", "ODD"}[r.IntN(5)])
		t.Set("shape", &List{Items: []any{int64(4), int64(8)}})
		t.Set("data_offsets", &List{Items: []any{at, at + 128}})
		at += 128
		header.Set(fmt.Sprintf("model.layers.%d.weight", i), t)
	}
	if r.IntN(4) > 0 {
		mutate(r, header)
	}
	text := JSON(header)
	size := uint64(len(text))
	if r.IntN(6) == 0 {
		size = uint64(oddSizes[r.IntN(len(oddSizes))])
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, size), text...), make([]byte, r.IntN(2)*int(at))...)
}

// ledger changes lines of a dry run's ledger.
func ledger(r *rand.Rand, seed []byte) []byte {
	lines := bytes.Split(seed, []byte("\n"))
	for range 1 + r.IntN(3) {
		at := r.IntN(len(lines))
		if v, err := parseJSON(lines[at]); err == nil && r.IntN(4) > 0 {
			mutate(r, v)
			lines[at] = JSON(v)
			continue
		}
		lines[at] = scramble(r, lines[at])
	}
	return bytes.Join(lines, []byte("\n"))
}
