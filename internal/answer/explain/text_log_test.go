package explain

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

// explainLog explains a text as a file.
func explainLog(t *testing.T, text string) (*Case, *Report) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.log")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := input.Open(t.Context(), file, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := NewCase(-1)
	if err := c.AddFile(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	r, err := c.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkText(t, r)
	return c, r
}

const died = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 786.00 MiB. GPU %d has a total capacity of 79.80 GiB of which 70.15 MiB is free. Of the allocated memory 78.05 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated."

// What the library's error says in numbers becomes what to type.
func TestRefusals(t *testing.T) {
	const (
		args  = "INFO non-default args: {'model': 'm', 'gpu_memory_utilization': 0.9, 'max_num_seqs': 256}\n"
		share = "the current vLLM instance can use total_gpu_memory (79.10GiB) x gpu_memory_utilization (%s) = 71.19GiB\n"
		kv    = "ValueError: To serve at least one request with the models's max seq len (262144), (24.00 GiB KV cache is needed, which is larger than the available KV cache memory (%s GiB). Try increasing"
	)
	for _, tt := range []struct{ name, text, verdict, summary, fixes string }{
		{
			"KV cache, the device unknown", args + fmt.Sprintf(kv, "8.04"), Capacity, "one request of max_model_len=262,144 tokens needs 24.00 GiB of KV cache, and 8.04 GiB is left for it: 15.96 GiB too little",
			"--max-model-len 87744 |a larger --gpu-memory-utilization: by at least 15.97 GiB divided",
		},
		{
			"KV cache, a larger share", fmt.Sprintf(share, "0.70") + fmt.Sprintf(kv, "12.04"), Capacity, "11.96 GiB too little",
			"--max-model-len 131424 |--gpu-memory-utilization 0.86 instead of 0.70: 11.97 GiB more of 79.10 GiB|--kv-cache-dtype fp8, if the cache has 16 bits now: half of it, 12.00 GiB, fits",
		},
		{"KV cache, no share is enough", fmt.Sprintf(share, "0.90") + fmt.Sprintf(kv, "8.04"), Capacity, "15.96 GiB too little", "--max-model-len 87744 |--kv-cache-dtype fp8"},
		{
			"nothing left", fmt.Sprintf(share, "0.40") + "INFO Available KV cache memory: -0.30 GiB\nValueError: No available memory for the cache blocks. Try", Capacity, "nothing is left for the KV cache (gpu_memory_utilization=0.4)",
			"--gpu-memory-utilization 0.41 instead of 0.40|smaller --max-num-batched-tokens",
		},
		{
			"taken", "ValueError: Free memory on device (3.27/15.98 GiB) on startup is less than desired GPU memory utilization (0.9, 14.39 GiB).", External, "14.39 GiB, but only 3.27 GiB of its 15.98 GiB is free: 12.71 GiB is held",
			"give back 11.13 GiB|--gpu-memory-utilization 0.20, if the model fits into 3.20 GiB",
		},
		{"transformers", "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM", Capacity, "transformers does not load", "device_map={\"\": 0}|max_memory="},
		{"accelerate alone", "RuntimeError: No executable batch size found, reached zero.", Capacity, "every batch size down to 1", ""},
		{"accelerate after a message", fmt.Sprintf(died, 0) + "\nRuntimeError: No executable batch size found, reached zero.", Fragmentation, "accelerate had tried every batch size down to 1", ""},
		{
			"sampler", fmt.Sprintf(died, 0) + "\nRuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please", Fragmentation, "vLLM was trying a batch of max_num_seqs=1,024 sequences",
			"a smaller --gpu-memory-utilization",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, r := explainLog(t, tt.text)
			if r.Trigger != tt.verdict || !strings.Contains(r.Summary, tt.summary) || c.Kind == "" {
				t.Errorf("%s: %s", r.Trigger, r.Summary)
			}
			for i, want := range strings.Split(tt.fixes, "|") {
				if want != "" && (i >= len(r.Fixes) || !strings.HasPrefix(r.Fixes[i].Detail, want)) {
					t.Errorf("fix %d is not %q: %+v", i, want, r.Fixes)
				}
			}
		})
	}
}

// Several messages of several ranks: the first rank to end is explained, with its
// op and the user's line.
func TestLogOfRanks(t *testing.T) {
	lines := func(rank, line int) string {
		prefix := fmt.Sprintf("[rank%d]: ", rank)
		return prefix + "Traceback (most recent call last):\n" +
			prefix + fmt.Sprintf("  File \"/home/u/train.py\", line %d, in main\n", line) + prefix + "    loss = model(x).loss\n" +
			prefix + "  File \"/v/site-packages/torch/nn/functional.py\", line 3504, in cross_entropy\n" + prefix + "    return torch._C._nn.cross_entropy_loss(\n" +
			prefix + fmt.Sprintf(died, rank) + "\n"
	}
	c, r := explainLog(t, lines(1, 39)+lines(0, 39)+lines(0, 39))
	f := r.Log.Failures
	if f == nil || f.Messages != 3 || f.Distinct != 2 || !f.Same || f.Explained != 6 || f.LastLine != 18 || fmt.Sprint(f.Ranks, f.Devices) != "[0 1] [0 1]" {
		t.Errorf("%+v", f)
	}
	if *r.Log.Op != "cross_entropy_loss" || !strings.HasSuffix(r.Summary, "It was requested by cross_entropy_loss at functional.py:3504 cross_entropy < train.py:39 main.") {
		t.Errorf("%s: %s", *r.Log.Op, r.Summary)
	}
	if want := "out-of-memory message of PyTorch 2.4+, rank 1, GPU 1, on line 6 (3 messages, 2 different, ranks 0, 1, lines 6 to 18: all the same failure)"; c.About[0] != want {
		t.Error(c.About[0])
	}
	if _, r := explainLog(t, lines(1, 39)+lines(0, 40)); r.Log.Failures.Same {
		t.Error("another line is the same failure")
	}
}

// Dumps over time have a trend, or none.
func TestTrend(t *testing.T) {
	for _, tt := range []struct {
		mib  []int
		want string
	}{
		{[]int{100, 200, 300, 400}, "Allocated memory grows by 100.00 MiB a dump over 4 dumps: from 100.00 MiB to 400.00 MiB. "},
		{[]int{100, 150, 120, 200, 260, 230, 300}, "Allocated memory grows by 33.33 MiB a dump over 7 dumps: from 100.00 MiB to 300.00 MiB. "},
		{[]int{100, 900, 100, 900, 100}, "Allocated memory varies over 5 dumps, without a trend: between 100.00 MiB and 900.00 MiB. "},
		{[]int{300, 200, 100}, "Allocated memory falls by 100.00 MiB a dump"},
		{[]int{300, 300, 300}, "Allocated memory is steady over 3 dumps: 300.00 MiB. "},
		{[]int{100, 200}, "Nothing failed"},
	} {
		var text strings.Builder
		for i, n := range tt.mib {
			fmt.Fprintf(&text, "step %d {'allocated_bytes.all.current': %d, 'reserved_bytes.all.current': 2000000000, 'num_ooms': 0, 'num_alloc_retries': 0}\n", i, n<<20)
		}
		if _, r := explainLog(t, text.String()); !strings.HasPrefix(r.Summary, tt.want) {
			t.Errorf("%v: %s", tt.mib, r.Summary)
		}
	}
}

// The op is the call in the innermost line, else its function.
func TestOp(t *testing.T) {
	for _, tt := range []struct{ name, code, want string }{
		{"forward", "return F.linear(input, self.weight, self.bias)", "linear"},
		{"softmax", "ret = input.softmax(dim, dtype=dtype)", "softmax"},
		{"_engine_run_backward", "return Variable._execution_engine.run_backward(", "backward"},
		{"attention", "attn = q @ k.transpose(-2, -1)", "matmul"},
		{"step", "state[\"exp_avg_sq\"] = torch.zeros_like(p)", "zeros_like"},
		{"cross_entropy", "", "cross_entropy"},
		{"forward", "", ""},
		{"f", "x += y", "f"},
	} {
		if got := opOf(message.Frame{Name: tt.name, Code: tt.code}); got != tt.want {
			t.Errorf("%s %q: %q", tt.name, tt.code, got)
		}
	}
}
