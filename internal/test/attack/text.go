package attack

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// messages are out-of-memory errors as PyTorch's versions and libraries word them.
var messages = []string{
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.04 GiB is free. " +
		"Process 4242 has 78.06 GiB memory in use. Of the allocated memory 70.12 GiB is allocated by PyTorch, and 7.01 GiB is reserved by PyTorch but unallocated. " +
		"If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
	"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity; 14.48 GiB already allocated; " +
		"9.75 MiB free; 14.60 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
	"RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 7.93 GiB total capacity; 6.11 GiB already allocated; 300.56 MiB free; 6.98 GiB reserved in total by PyTorch)",
	"torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 7.01 GiB\nRequested               : 1.00 GiB\n" +
		"Device limit            : 79.11 GiB\nFree (according to CUDA): 70.12 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
	"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 3 has a total capacity of 23.69 GiB of which 512.00 KiB is free. " +
		"Including non-PyTorch memory, this process has 23.60 GiB memory in use. 20.00 GiB allowed; Of the allocated memory 22.00 GiB is allocated by PyTorch, " +
		"with 100.00 MiB allocated in private pools (e.g., CUDA Graphs), and 1.00 GiB is reserved by PyTorch but unallocated.",
	"RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call",
	"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
	"ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (65536).",
}

// dumps are the two forms of memory_stats(), printed and as JSON.
var dumps = []string{
	"{'active.all.allocated': 100, 'active.all.current': 10, 'active_bytes.all.current': 1048576, 'active_bytes.all.peak': 2097152, " +
		"'allocated_bytes.all.current': 1048576, 'allocated_bytes.all.peak': 2097152, 'reserved_bytes.all.current': 20971520, 'reserved_bytes.all.peak': 20971520, " +
		"'num_alloc_retries': 3, 'num_ooms': 1, 'max_split_size': -1, 'requested_bytes.all.current': 1000000}",
	`{"allocated_bytes.all.current": 6498866176, "allocated_bytes.all.peak": 6686026752, "reserved_bytes.all.current": 7245660160, "reserved_bytes.all.peak": 7258243072, "num_ooms": 0, "num_alloc_retries": 0}`,
}

var (
	decimals = regexp.MustCompile(`-?\d+(\.\d+)?`)
	prefixes = []string{"", "[rank0]: ", "\x1b[31m", "2026-01-02 03:04:05,678 ERROR ", "(Worker pid=12) ", "  | "}
	oddSize  = []string{
		"17179869184.00", "17179869184.00", "17179869184.00", "0.00", "-1.00", "999999999999999999999999.99", "1e300", "NaN", "18446744073709551615", "9223372036854775807.99", "0.01", "1", "",
		"17179869183.99", "8589934592.00", "0000000000000000000000000000000000000000001.00", "1.2.3", "1,024.00",
	}
)

// oddNumbers changes some of the numbers in a text.
func oddNumbers(r *rand.Rand, text string) string {
	return decimals.ReplaceAllStringFunc(text, func(n string) string {
		if r.IntN(5) > 0 {
			return n
		}
		return oddSize[r.IntN(len(oddSize))]
	})
}

// log is a text with messages and dumps in it, broken in many ways.
func log(r *rand.Rand) []byte {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		prefix := prefixes[r.IntN(len(prefixes))]
		text := "step 1 loss 2.5\nmemory 70.1 GiB"
		switch r.IntN(4) {
		case 0:
			text = dumps[r.IntN(len(dumps))]
		case 1, 2:
			text = messages[r.IntN(len(messages))]
		}
		if r.IntN(3) > 0 {
			text = oddNumbers(r, text)
		}
		if r.IntN(5) == 0 {
			text = "Traceback (most recent call last):\n  File \"train.py\", line 12, in " + oddTexts[r.IntN(len(oddTexts))] + "\n    x.cuda()\n" + text
		}
		for _, line := range strings.Split(text, "\n") {
			fmt.Fprintf(&b, "%s%s\n", prefix, line)
		}
	}
	text := []byte(b.String())
	if r.IntN(3) == 0 {
		text = scramble(r, text)
	}
	return text
}
