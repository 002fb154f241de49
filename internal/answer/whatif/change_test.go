package whatif

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

func bucket(t *testing.T, text string) Bucket {
	t.Helper()
	b, err := ParseBucket(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBucket(t *testing.T) {
	for _, tt := range []struct {
		text       string
		size, want uint64
	}{
		{"pow2", 1, 1},
		{"pow2", 512, 512},
		{"pow2", 513, 1024},
		{"pow2", 1 << 30, 1 << 30},
		{"pow2", 1<<30 + 1, 1 << 31},
		{"1.25", 640, 640},
		{"1.25", 641, 800},
		{"1.25", 800, 800},
		{"64MiB, 16MiB", 1, 16 << 20},
		{"64MiB,16MiB", 16<<20 + 1, 64 << 20},
		{"64MiB,16MiB", 64<<20 + 1, 64<<20 + 1},
	} {
		b := bucket(t, tt.text)
		if got := b.pad(tt.size); got != tt.want {
			t.Errorf("%s: %d becomes %d, want %d", tt.text, tt.size, got, tt.want)
		}
	}
	b := bucket(t, "1.25")
	for n := uint64(1); n < 1<<40; n = n*5/4 + 1 {
		if got := b.pad(n); got < n || n > 512 && float64(got) > 1.251*float64(n) || b.pad(got) != got {
			t.Fatalf("%d becomes %d, and that %d", n, got, b.pad(got))
		}
	}
	for _, text := range []string{"", "1", "0.5", "-2", "17", "NaN", "pow3", "16MiB,", "0MiB", "16MiB;64MiB"} {
		if b, err := ParseBucket(text); err == nil {
			t.Errorf("%q is read as %+v", text, b)
		}
	}
}

func TestComparable(t *testing.T) {
	step := func(n int) findings.Step { return findings.Step{Number: n, Complete: n != 9} }
	for _, tt := range []struct{ steps, want []int }{
		{nil, nil}, {[]int{1}, []int{1}}, {[]int{1, 2, 9}, []int{1, 2}}, {[]int{1, 2, 3, 9}, []int{2, 3}},
	} {
		var steps []findings.Step
		for _, n := range tt.steps {
			steps = append(steps, step(n))
		}
		var got []int
		for _, s := range comparable(steps) {
			got = append(got, s.Number)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("of %v: %v, want %v", tt.steps, got, tt.want)
		}
	}
}

// With sizes that vary, padding to few sizes asks for more and touches most
// requests; in a run whose steps are alike there is nothing to pad.
func TestAskBucket(t *testing.T) {
	p := program(t, "snapshots/gpt2_varlen-default.pickle.gz")
	q := question(p, setting(t, "expandable_segments:True"))
	q.Bucket = bucket(t, "pow2")
	a := ask(t, p, q)
	if len(a.Results) != 3 || a.Results[0].Change != nil || *a.Results[1].Change != "bucket pow2" || *a.Results[2].Change != "bucket pow2" {
		t.Fatalf("%d results: %+v", len(a.Results), a.Changes)
	}
	own, padded := a.Results[0], a.Results[1]
	if padded.PeakRequested <= own.PeakRequested || padded.PeakRequested > 2*own.PeakRequested || a.Results[2].Settings != "expandable_segments:True" {
		t.Errorf("%d becomes %d", own.PeakRequested, padded.PeakRequested)
	}
	if n := a.Changes[0].Note; !strings.Contains(n, "call sites ask for sizes that vary") {
		t.Errorf("the note: %s", n)
	}

	p = program(t, "snapshots/gpt2_fixed-default.pickle.gz")
	q = question(p)
	q.Bucket = bucket(t, "pow2")
	a = ask(t, p, q)
	if n := a.Changes[0].Note; !strings.HasPrefix(n, "0 of ") || a.Results[1].PeakReserved != a.Results[0].PeakReserved {
		t.Errorf("sizes that do not vary: %s", n)
	}
}

// The same blocks are allocated, in another order.
func TestAskOrder(t *testing.T) {
	p := program(t, "snapshots/llama_ckpt-default.pickle.gz")
	q := question(p)
	q.Order = true
	a := ask(t, p, q)
	own, first := a.Results[0], a.Results[1]
	if *first.Change != "order" || first.PeakRequested < own.PeakRequested || first.PeakReserved >= own.PeakReserved {
		t.Errorf("long-lived first: %d reserved instead of %d, %d asked for instead of %d", first.PeakReserved, own.PeakReserved, first.PeakRequested, own.PeakRequested)
	}
}

// Without the cache each request is a call of the driver, and what is reserved
// is what was asked for.
func TestAskNoCache(t *testing.T) {
	p := program(t, "snapshots/gpt2_fixed-default.pickle.gz")
	q := question(p, setting(t, "expandable_segments:True"))
	q.NoCache, q.Points = true, 100
	a := ask(t, p, q)
	if len(a.Results) != 3 || *a.Results[1].Change != ChangeNoCache || a.Results[2].Change != nil {
		t.Fatalf("%d results", len(a.Results))
	}
	own, r := a.Results[0], a.Results[1]
	var allocs, frees int64
	for i := range p.Program.Len() {
		switch p.Program.Call(i).Kind {
		case replay.CallAlloc:
			allocs++
		case replay.CallFree, replay.CallFreeLater:
			frees++
		}
	}
	if r.DeviceAllocs != allocs || r.DeviceFrees != frees || r.PeakReserved != own.PeakRequested || r.DriverMS < 10*own.DriverMS {
		t.Errorf("%d allocs, %d frees, %d reserved, %v ms; want %d, %d, %d", r.DeviceAllocs, r.DeviceFrees, r.PeakReserved, r.DriverMS, allocs, frees, own.PeakRequested)
	}
	if n := len(r.Curve.Event); n != 100 || slices.Max(r.Curve.Reserved) != r.PeakReserved {
		t.Errorf("a curve of %d points", n)
	}
	if r.Limit != nil || r.Export != "export PYTORCH_NO_CUDA_MEMORY_CACHING=1" {
		t.Errorf("%v, %q", r.Limit, r.Export)
	}

	// A device that is too small fails where the requests exceed it.
	q.Memory.Bytes, q.Settings = new(uint64), nil
	*q.Memory.Bytes = own.PeakRequested - 1
	r = ask(t, p, q).Results[1]
	if !r.Fails || r.First.Reserved+r.First.Size <= own.PeakRequested-1 || r.PeakReserved >= own.PeakRequested {
		t.Errorf("on a small device: %+v", r.First)
	}
	q.SkipOOM = true
	if r = ask(t, p, q).Results[1]; r.OOMs == 0 || r.PeakReserved >= own.PeakRequested {
		t.Errorf("with failures left out: %d, %d reserved", r.OOMs, r.PeakReserved)
	}
}

// What three scripts did on a GPU when they emptied the cache before each step, and
// without a cache, follows from the recording of the plain run, and the plain run
// from that with the calls.
func TestMeasuredChanges(t *testing.T) {
	type measured struct {
		Script, Mode string
		Stats        struct {
			Reserved  uint64 `json:"reserved_bytes.all.peak"`
			Requested uint64 `json:"requested_bytes.all.peak"`
		}
		Calls struct {
			CudaMalloc, CudaFree struct{ Count int64 }
		}
	}
	var rows []measured
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "nocache", "nocache.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	var times map[string][]float64 // ms, of three visits
	data, err = os.ReadFile(filepath.Join("..", "..", "..", "testdata", "nocache", "times.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &times); err != nil {
		t.Fatal(err)
	}
	runs := map[string]measured{}
	for _, r := range rows {
		runs[r.Script+"-"+r.Mode] = r
	}
	for _, script := range []string{"batches", "cache", "pieces"} {
		plain := runs[script+"-plain"]
		for _, tt := range []struct{ from, to, calls string }{
			{"plain", "empty", "every:1"}, {"empty", "plain", "none"}, {"plain", "uncached", ""},
		} {
			p := program(t, "nocache/"+script+"-"+tt.from+".pickle.gz")
			q := question(p)
			want := runs[script+"-"+tt.to]
			reserved := want.Stats.Reserved
			if tt.calls == "" {
				q.NoCache = true
				reserved = plain.Stats.Requested // PyTorch counts nothing without its cache
			} else {
				q.EmptyCache = emptyCache(t, tt.calls)
			}
			got := ask(t, p, q).Results[1]
			if got.DeviceAllocs != want.Calls.CudaMalloc.Count || got.DeviceFrees != want.Calls.CudaFree.Count || got.PeakReserved != reserved {
				t.Errorf("%s, %s from %s: %d cudaMalloc, %d cudaFree, %d bytes reserved; measured %d, %d, %d", script, tt.to, tt.from,
					got.DeviceAllocs, got.DeviceFrees, got.PeakReserved, want.Calls.CudaMalloc.Count, want.Calls.CudaFree.Count, reserved)
			}
			took := slices.Sorted(slices.Values(times[script+"-"+tt.to]))[1] // the visits differ by up to 2.4
			if r := took / got.DriverMS; r < 1/1.5 || r > 1.5 {
				t.Errorf("%s, %s from %s: %.2f ms in the driver, measured %.2f", script, tt.to, tt.from, got.DriverMS, took)
			}
		}
	}
}
