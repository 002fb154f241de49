package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// The errors of vLLM, transformers and accelerate in the wordings of several
// versions, with prefixes and line breaks.
func TestRefusals(t *testing.T) {
	const core = "(EngineCore_DP0 pid=268) ERROR 10-21 00:35:03 [core.py:708] "
	for _, tt := range []struct{ name, text, want string }{
		{
			"v1 with an estimate", core + "ValueError: To serve at least one request with the models's max seq len (262144), (24.00 GiB KV cache is needed, which is larger than the available KV cache memory (8.04 GiB). Based on the available memory, the estimated maximum model length is 87840. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
			"kv_cache_too_small vLLM: 262144 tokens, 87840 fit, needs 24.00 GiB, has 8.04 GiB; pid 268",
		},
		{
			"newer, without the bracket", "ValueError: To serve at least one request with the model's max seq len (131072), 48.01 GiB KV cache is needed, which is larger than the available KV cache memory (12.8 GiB). Based on the available memory, the estimated maximum model length is 34944. Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend)",
			"kv_cache_too_small vLLM: 131072 tokens, 34944 fit, needs 48.01 GiB, has 12.80 GiB",
		},
		{
			"the first v1, all digits", "ValueError: To serve at least one request with the models's max seq len (32768), (2.0 GB KV cache isneeded, which is larger than the available KV Cache memory (0.78125762939453125 GB). Try increasing",
			"kv_cache_too_small vLLM: 32768 tokens, needs 2.00 GiB, has 800.01 MiB",
		},
		{
			"v0", "INFO 12-02 10:00:00 worker.py:232] Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory=17.98GiB memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size=2.89GiB gpu_memory_utilization=0.90\nValueError: The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV cache (23648). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`",
			"kv_cache_too_small vLLM: 29000 tokens, 23648 fit, has 2.89 GiB, device of 23.58 GiB, share 0.9",
		},
		{
			"nothing left", "INFO non-default args: {'model': 'm', 'gpu_memory_utilization': 0.4, 'max_num_seqs': 64}\nINFO 04-30 10:20:35 [gpu_worker.py:227] Available KV cache memory: -0.30 GiB\nTraceback (most recent call last):\n  File \"/v/site-packages/vllm/v1/core/kv_cache_utils.py\", line 699, in check_enough_kv_cache_memory\n    raise ValueError(\"No available memory for the cache blocks. \"\nValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
			"no_kv_cache vLLM: short of 307.20 MiB, share 0.4, 64 sequences; 1 frames",
		},
		{
			"taken", "ValueError: Free memory on device cuda:1 (2.6/121.63 GiB) on startup is less than desired GPU memory utilization (0.08, 9.73 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
			"device_taken vLLM: GPU 1, free 2.60 GiB, wanted 9.73 GiB, device of 121.63 GiB, share 0.08",
		},
		{
			"taken, older", "Free memory on device (0.49/79.32 GiB) on startup is less than\n desired GPU memory utilization (0.6, 47.59 GiB).",
			"device_taken vLLM: free 501.76 MiB, wanted 47.59 GiB, device of 79.32 GiB, share 0.6",
		},
		{
			"sampler", prefixed("(VllmWorker rank=7 pid=10948) ERROR 03-16 06:12:38 [multiproc_executor.py:375] ", "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs`"),
			"sampler_warmup vLLM: 1024 requests; rank 7, pid 10948",
		},
		{
			"transformers", "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.",
			"model_offloaded transformers",
		},
		{"accelerate", "[rank0]: RuntimeError: No executable batch size found, reached zero.", "no_batch_size accelerate; rank 0"},
		{"source alone", "    raise ValueError(\"No available memory for the cache blocks. \"\n    raise RuntimeError(\"No executable batch size found, reached zero.\")", ""},
		{"prose", "vLLM says that some modules are dispatched on the CPU or the disk when memory is short", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range ParseRefusals("step 1\n" + tt.text) {
				got = append(got, briefRefusal(r))
			}
			if s := strings.Join(got, "|"); s != tt.want {
				t.Errorf("\n got %s\nwant %s", s, tt.want)
			}
			if all, err := Parse(tt.text); err == nil {
				t.Errorf("a message of PyTorch: %q", all[0].Text)
			}
		})
	}
}

func briefRefusal(r *Refusal) string {
	var said []string
	number := func(n uint64, what string) {
		if n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, what))
		}
	}
	size := func(what string, r *units.Range) {
		if r != nil {
			said = append(said, what+" "+units.Size(r.Mid))
		}
	}
	number(r.MaxModelLen, "tokens")
	number(r.FittingLen, "fit")
	number(r.Requests, "requests")
	if r.Device >= 0 {
		said = append(said, fmt.Sprintf("GPU %d", r.Device))
	}
	size("needs", r.NeededBytes)
	size("has", r.AvailableBytes)
	size("short of", r.ShortBytes)
	size("free", r.FreeBytes)
	size("wanted", r.WantedBytes)
	size("device of", r.TotalBytes)
	if r.Utilization > 0 {
		said = append(said, fmt.Sprintf("share %v", r.Utilization))
	}
	number(r.MaxNumSeqs, "sequences")
	out := r.Kind + " " + r.Library
	if len(said) > 0 {
		out += ": " + strings.Join(said, ", ")
	}
	var by []string
	if r.Rank >= 0 {
		by = append(by, fmt.Sprintf("rank %d", r.Rank))
	}
	if r.PID > 0 {
		by = append(by, fmt.Sprintf("pid %d", r.PID))
	}
	if len(r.Traceback) > 0 {
		by = append(by, fmt.Sprintf("%d frames", len(r.Traceback)))
	}
	if len(by) > 0 {
		out += "; " + strings.Join(by, ", ")
	}
	return out
}
