package sdpa_test

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/sdpa"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
)

// TestRecorded compares with torch._fused_sdp_choice of PyTorch 2.11 on an
// H200 with cuDNN 9.19.
func TestRecorded(t *testing.T) {
	masks := map[string]sdpa.Mask{
		"none": sdpa.NoMask, "causal": sdpa.Causal, "bool": sdpa.BoolMask, "float": sdpa.FloatMask, "boolgrad": sdpa.GradMask,
	}
	type row struct {
		DType   sdpa.DType   `json:"dtype"`
		QK      int          `json:"dq"`
		V       int          `json:"dv"`
		S       int          `json:"s"`
		Keys    int          `json:"sk"`
		GQA     bool         `json:"gqa"`
		Mask    string       `json:"mask"`
		Dropout float64      `json:"dropout"`
		Grad    bool         `json:"grad"`
		Pick    sdpa.Backend `json:"pick"`
	}
	rows, seen := jsonl.Must[row](t, "../../../testdata/plan/sdpa.jsonl.gz"), map[sdpa.Backend]int{}
	for _, r := range rows {
		mask, ok := masks[r.Mask]
		if !ok {
			t.Fatalf("mask %q", r.Mask)
		}
		q := sdpa.Query{
			DType: r.DType, QKDim: r.QK, VDim: r.V, Queries: r.S, Keys: r.Keys, Heads: 8, KVHeads: 8,
			Mask: mask, Dropout: r.Dropout, Grad: r.Grad,
		}
		if r.GQA {
			q.KVHeads = 2
		}
		seen[r.Pick]++
		if got := sdpa.Choose(q); got.Backend != r.Pick {
			t.Errorf("%+v: %s, torch picked %s", r, got.Reason(), r.Pick)
		}
	}
	if len(rows) != 5400 || len(seen) != 4 {
		t.Errorf("%d rows, picks %v", len(rows), seen)
	}
}

// TestCards has the rules that depend on the card, from sdp_utils.cpp.
func TestCards(t *testing.T) {
	base := sdpa.Query{DType: sdpa.BFloat16, QKDim: 128, VDim: 128, Queries: 64, Keys: 64, Heads: 8, Mask: sdpa.Causal, Grad: true}
	for _, c := range []struct {
		name   string
		change func(*sdpa.Query)
		want   string
	}{
		{"Hopper", func(*sdpa.Query) {}, "cudnn (first in order)"},
		{"Hopper with an older cuDNN", func(q *sdpa.Query) { q.CuDNN = 91002 }, "flash (first in order)"},
		{"Ampere", func(q *sdpa.Query) { q.Major = 8 }, "flash (first in order)"},
		{"Ampere, a mask", func(q *sdpa.Query) { q.Major, q.Mask = 8, sdpa.BoolMask }, "efficient (flash: a mask)"},
		{
			"Ampere, a mask and groups", func(q *sdpa.Query) { q.Major, q.Mask, q.KVHeads = 8, sdpa.BoolMask, 2 },
			"math (flash: a mask; efficient: grouped heads)",
		},
		{
			"Ada, wide heads", func(q *sdpa.Query) { q.Major, q.Minor, q.QKDim, q.VDim = 8, 9, 200, 200 },
			"efficient (flash: no backward for a head of 200 on sm89)",
		},
		{"Ada, 256 without dropout", func(q *sdpa.Query) { q.Major, q.Minor, q.QKDim, q.VDim = 8, 9, 256, 256 }, "flash (first in order)"},
		{
			"Ada, 256 with dropout", func(q *sdpa.Query) { q.Major, q.Minor, q.QKDim, q.VDim, q.Dropout = 8, 9, 256, 256, 0.1 },
			"efficient (flash: no backward for a head of 256 on sm89)",
		},
		{
			"Ada, wide heads, no gradient", func(q *sdpa.Query) { q.Major, q.Minor, q.QKDim, q.VDim, q.Grad = 8, 9, 200, 200, false },
			"flash (first in order)",
		},
		{"Turing, bfloat16", func(q *sdpa.Query) { q.Major, q.Minor = 7, 5 }, "math (flash: sm75; efficient: bfloat16 on sm75)"},
		{"Turing, float16", func(q *sdpa.Query) { q.Major, q.Minor, q.DType = 7, 5, sdpa.Float16 }, "efficient (flash: sm75)"},
		{
			"Turing, float32, odd heads", func(q *sdpa.Query) { q.Major, q.Minor, q.DType, q.QKDim, q.VDim = 7, 5, sdpa.Float32, 33, 33 },
			"efficient (flash: sm75)",
		},
		{"Blackwell", func(q *sdpa.Query) { q.Major = 10 }, "cudnn (first in order)"},
		{"Blackwell, 256", func(q *sdpa.Query) { q.Major, q.QKDim, q.VDim = 10, 256, 256 }, "flash (cudnn: a head of 256 is wider than 128)"},
		{"Blackwell, DeepSeek", func(q *sdpa.Query) { q.Major, q.QKDim, q.VDim = 10, 192, 128 }, "cudnn (first in order)"},
		{"GeForce Blackwell", func(q *sdpa.Query) { q.Major = 12 }, "flash (first in order)"},
		{"float32", func(q *sdpa.Query) { q.DType = sdpa.Float32 }, "efficient (cudnn: float32; flash: float32)"},
		{
			"one query with dropout", func(q *sdpa.Query) { q.Queries, q.Dropout, q.Mask = 1, 0.1, sdpa.NoMask },
			"flash (cudnn: a single query with dropout)",
		},
		{
			"nothing to see", func(q *sdpa.Query) { q.Keys = 0 },
			"math (cudnn: an empty sequence; flash: an empty sequence; efficient: an empty sequence)",
		},
	} {
		q := base
		c.change(&q)
		if got := sdpa.Choose(q).Reason(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func ExampleChoose() {
	// DeepSeek's attention has keys of 192 and values of 128.
	q := sdpa.Query{Major: 8, DType: sdpa.BFloat16, QKDim: 192, VDim: 128, Queries: 4096, Keys: 4096, Heads: 16, Mask: sdpa.Causal, Grad: true}
	fmt.Println(sdpa.Choose(q).Reason())
	q.Major = 9
	fmt.Println(sdpa.Pick(q))
	// Output:
	// efficient (flash: keys of 192 and values of 128)
	// cudnn
}

// TestDocumented has the table of docs/measured/plan.md, as `tools/bench/plan/measure.py sdpa`
// printed it.
func TestDocumented(t *testing.T) {
	for _, width := range [][2]int{{64, 64}, {128, 128}, {192, 128}, {256, 256}} {
		for _, dropout := range []float64{0, 0.1} {
			for mask, bf16 := range map[sdpa.Mask]sdpa.Backend{sdpa.Causal: sdpa.CuDNN, sdpa.BoolMask: sdpa.CuDNN, sdpa.GradMask: sdpa.Efficient} {
				for dtype, want := range map[sdpa.DType]sdpa.Backend{sdpa.BFloat16: bf16, sdpa.Float32: sdpa.Efficient} {
					q := sdpa.Query{
						DType: dtype, QKDim: width[0], VDim: width[1], Queries: 1024, Keys: 1024, Heads: 8,
						Mask: mask, Dropout: dropout, Grad: true,
					}
					if got := sdpa.Choose(q); got.Backend != want {
						t.Errorf("%+v: %s, torch picked %s", q, got.Reason(), want)
					}
				}
			}
		}
	}
}
