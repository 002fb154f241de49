package message

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// 2.3 printed the number of the device as the byte itself.
func TestRawDevice(t *testing.T) {
	const numbers = " tried 20.00 MiB total 79.15 GiB free 10.25 MiB"
	for _, tt := range []struct{ name, device, want string }{
		{"the byte", "\x01", "native CUDA v2.3 torch.cuda.OutOfMemoryError gpu1" + numbers},
		{"of a Python string", `\x07`, "native CUDA v2.3 torch.cuda.OutOfMemoryError gpu7" + numbers},
		{"of JSON", `\u0003`, "native CUDA v2.3 torch.cuda.OutOfMemoryError gpu3" + numbers},
		{"of JSON in JSON", `\\u000b`, "native CUDA v2.3 torch.cuda.OutOfMemoryError gpu11" + numbers},
		{"of a pager", "^B", "native CUDA v2.3 torch.cuda.OutOfMemoryError gpu2" + numbers},
		{"lost by a terminal", "", "native CUDA v2.3 torch.cuda.OutOfMemoryError" + numbers},
		{"a tab, or a blank", "\t", "native CUDA v2.3 torch.cuda.OutOfMemoryError" + numbers},
		{"a number", "1", "native CUDA v2.1-2.4 torch.cuda.OutOfMemoryError gpu1" + numbers},
	} {
		text := "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU " + tt.device + " has a total capacity of 79.15 GiB of which 10.25 MiB is free."
		if got := brief(parse(t, text)[0]); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// 2.12's throw_on_cudamalloc_oom has an error without numbers, and a warning with
// them before it.
func TestRejections(t *testing.T) {
	const (
		warning = "Preemptively rejecting allocation: requested 20.00 GiB but total_allocated_memory (60.00 GiB) + requested size would exceed memory limit (71.24 GiB = 90% of 79.15 GiB)"
		text    = "torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. Requested size: "
		frames  = "Traceback (most recent call last):\n  File \"/job/train.py\", line 9, in <module>\n    y = x @ w\n"
		numbers = " tried 20.00 GiB total 79.15 GiB limit 71.24 GiB reserved 60.00 GiB"
	)
	const logged = "[W713 12:00:00.123456789 CUDACachingAllocator.cpp:1234] Warning: "
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"the error", text + "20.00 GiB", []string{"native CUDA v2.12+ torch.OutOfMemoryError tried 20.00 GiB"}},
		{"the warning", logged + warning + " (function operator())", []string{"native v2.12+" + numbers}},
		{"a whole percentage with decimals", strings.Replace(warning, "90%", "90.00%", 1), []string{"native v2.12+" + numbers}},
		{"both", logged + warning + "\n" + frames + text + "20.00 GiB\n", []string{"native CUDA v2.12+ torch.OutOfMemoryError" + numbers}},
		{"the warning of another", logged + warning + "\n" + frames + text + "2.00 GiB\n", []string{"native v2.12+" + numbers, "native CUDA v2.12+ torch.OutOfMemoryError tried 2.00 GiB"}},
		{"another rank's warning", "[rank1]:" + logged + warning + "\n[rank0]: " + text + "20.00 GiB\n", []string{"native v2.12+" + numbers, "native CUDA v2.12+ torch.OutOfMemoryError tried 20.00 GiB"}},
		{
			"two ranks at once", "[rank0]: " + logged + warning + "\n[rank1]: " + logged + warning + "\n[rank0]: " + text + "20.00 GiB\n[rank1]: " + text + "20.00 GiB\n",
			[]string{"native CUDA v2.12+ torch.OutOfMemoryError" + numbers, "native CUDA v2.12+ torch.OutOfMemoryError" + numbers},
		},
	} {
		var got []string
		for _, o := range parse(t, tt.text) {
			got = append(got, brief(o))
		}
		if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// TestInterleaved: ranks that die together write their lines in any order. Each
// message reads as if it stood alone.
func TestInterleaved(t *testing.T) {
	const one = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU %d has a total capacity of 79.15 GiB of which %d.25 MiB is free. Of the allocated memory 7%d.00 GiB is allocated by PyTorch, and %d.42 GiB is reserved by PyTorch but unallocated."
	rng := rand.New(rand.NewPCG(7, 8))
	for _, prefix := range []string{"[rank%d]: ", "[default%d]:", "%d: ", "[1,%d]<stderr>: ", "(Worker rank=%d pid=77) ERROR 03-19 07:27:53 [executor.py:375] ", "(train pid=4%d, ip=10.0.0.7) "} {
		for range 20 {
			const ranks = 4
			want := map[string]bool{}
			var left [ranks][]string
			for r := range ranks {
				text := fmt.Sprintf(one, 20+2*r, r, 10+r, r, 1+r)
				want[brief(parse(t, text)[0])+fmt.Sprintf(" at train.py:%d", 10+r)] = true
				trace := fmt.Sprintf("Traceback (most recent call last):\n  File \"train.py\", line %d, in <module>\n    step()", 10+r)
				left[r] = append(strings.Split(trace, "\n"), wrap(text, 40+10*rng.IntN(8), false)...)
			}
			var b strings.Builder
			for sum := 1; sum > 0; {
				r := rng.IntN(ranks)
				if len(left[r]) > 0 {
					fmt.Fprintf(&b, prefix+"%s\n", r, left[r][0])
					left[r] = left[r][1:]
				}
				sum = 0
				for _, l := range left {
					sum += len(l)
				}
			}
			all := parse(t, b.String())
			for _, o := range all {
				got := brief(o)
				if len(o.Traceback) > 0 {
					got += fmt.Sprintf(" at %s:%d", o.Traceback[0].File, o.Traceback[0].Line)
				}
				if !want[got] {
					t.Fatalf("%s: read %s in\n%s", prefix, got, b.String())
				}
			}
			if len(all) != ranks {
				t.Fatalf("%s: %d messages in\n%s", prefix, len(all), b.String())
			}
		}
	}
}

// TestCut: a log may end inside a message, at any byte.
func TestCut(t *testing.T) {
	const head, tail = "CUDA out of memory. Tried to allocate 20.00 MiB. ", "GPU 0 has a total capacity of 79.15 GiB of which 10.25 MiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch"
	for n := range len(tail) {
		if o := parse(t, head+tail[:n])[0]; !o.Cut {
			t.Fatalf("%q is whole", head+tail[:n])
		}
	}
	for _, text := range []string{
		head + tail,
		head + "\nand the job went on\n",
		"CUDA error: out of memory",
		"CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated",
	} {
		if parse(t, text)[0].Cut {
			t.Errorf("%q is cut", text)
		}
	}
}
