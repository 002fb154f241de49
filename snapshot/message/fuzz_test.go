package message

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/cost"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// FuzzParse: no panic, no endless looking, and what is found is in the text.
func FuzzParse(f *testing.F) {
	for _, tt := range wild {
		f.Add(tt.text)
		f.Add("[rank0]: " + strings.ReplaceAll(tt.text, ". ", ".\n[rank0]: ") + "\n" + tt.text)
	}
	f.Add("gpu_memory_utilization=0.9\nValueError: No available memory for the cache blocks. \n  File \"a.py\", line 1, in f\n    x()\nFree memory on device cuda:0 (1.5/20.0 GiB) on startup is less than desired GPU memory utilization (0.9, 18.0 GiB)")
	f.Add("\x1b[31mCUDA out of memory\x1b]0;x\x07\\u001b[0m \\n\\\\\\n{\"log\":\"Tried to allocate 1.00 GiB\",\"stream\":\"stderr\"}")
	f.Fuzz(func(t *testing.T, text string) {
		var all []*OOM
		var err error
		used := cost.Bytes(func() {
			all, err = Parse(text)
			for _, r := range ParseRefusals(text) {
				if r.Kind == "" || r.Line < 1 || r.Line > 1+strings.Count(text, "\n") {
					t.Fatalf("%+v", r)
				}
			}
		})
		if (err == nil) != (len(all) > 0) {
			t.Fatalf("%d messages, %v", len(all), err)
		}
		check(t, text, all)
		if p := Plain(text); len(p) != len(text) {
			t.Fatalf("%d bytes of %d", len(p), len(text))
		}
		if used > 4<<20+10_000*uint64(len(text)) {
			t.Fatalf("%d bytes of memory for %d bytes", used, len(text))
		}
	})
}

// TestLong: texts that would be slow if anything were looked at again and again.
// Each look copies what it looks at.
func TestLong(t *testing.T) {
	for _, piece := range short.Some([]string{
		"CUDA out of memory. ", "Tried to allocate ", "Tried to allocate 1.00 GiB. GPU ", "out of memory\n", "(GPU 0; ", "\n", " ", "\\", "[", "0", "0: ", "iB memory ",
		"[rank0]: out of memory\n", "If reserved memory is ", "\x1b[", "this process has 1.00 GiB memory in use. ", "RuntimeError: CUDA out of memory\n", "Allocation on device\n",
		"  File \"a.py\", line 1, in f\nCUDA out of memory. Tried to allocate 1.00 GiB. ", "ValueError: No available memory for the cache blocks. ", "executable batch size ",
	}, 4) {
		parse := func(n int) {
			text := strings.Repeat(piece, n/len(piece))
			all, _ := Parse(text)
			ParseRefusals(text)
			check(t, text, all[:min(len(all), 100)])
		}
		if cost.Grows(parse) {
			t.Errorf("%q repeated four times as often takes far more than four times the work", piece)
		}
	}
}

// TestSizesRoundTrip: a number printed as PyTorch does reads back as a range
// that holds it.
func TestSizesRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		n := rng.Uint64() >> (4 + rng.IntN(60))
		o := parse(t, "CUDA out of memory. Tried to allocate "+units.Torch(n)+". GPU 0 has a total capacity of "+units.Torch(n/3)+" of which 0 bytes is free.")[0]
		if !o.TriedBytes.Contains(n) || !o.TotalBytes.Contains(n/3) {
			t.Fatalf("%d: %s", n, brief(o))
		}
	}
}
