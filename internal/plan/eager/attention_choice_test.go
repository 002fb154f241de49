package eager

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kernelNames are the kernels as torch names them.
var kernelNames = map[Backend]string{
	CuDNNAttention: "cudnn", FlashAttention: "flash", EfficientAttention: "efficient", MathAttention: "math",
}

// onHopper is a query of an H200 for square attention with heads of one width.
func onHopper(d DType, mask maskKind) AttentionQuery {
	return AttentionQuery{
		major: 9, cudnn: cudnnVersion, dtype: d, qkDim: 128, vDim: 128, queries: 64, keys: 64, heads: 8, kvHeads: 8, mask: mask, grad: true,
	}
}

// reason words a choice: "efficient (cudnn: float32; flash: a mask)".
func reason(q AttentionQuery) string {
	picked := q.Pick()
	var refused []string
	for _, b := range q.order() {
		if b == picked {
			break
		}
		refused = append(refused, kernelNames[b]+": "+q.Refuses(b))
	}
	if refused == nil {
		return kernelNames[picked] + " (first in order)"
	}
	return kernelNames[picked] + " (" + strings.Join(refused, "; ") + ")"
}

// TestChoiceRecorded compares with torch._fused_sdp_choice of PyTorch 2.11 on an
// H200 with cuDNN 9.19.
func TestChoiceRecorded(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "..", "testdata", "plan", "sdpa.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	masks := map[string]maskKind{
		"none": noMask, "causal": causalMask, "bool": boolMask, "float": floatMask, "boolgrad": gradMask,
	}
	seen, scan := map[string]int{}, bufio.NewScanner(in)
	rows := 0
	for scan.Scan() {
		var r struct {
			DType   string  `json:"dtype"`
			QK      int     `json:"dq"`
			V       int     `json:"dv"`
			S       int     `json:"s"`
			Keys    int     `json:"sk"`
			GQA     bool    `json:"gqa"`
			Mask    string  `json:"mask"`
			Dropout float64 `json:"dropout"`
			Grad    bool    `json:"grad"`
			Pick    string  `json:"pick"`
		}
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		mask, ok := masks[r.Mask]
		dtype := slices.Index(dtypeNames[:], r.DType)
		if !ok || dtype < 0 {
			t.Fatalf("mask %q, type %q", r.Mask, r.DType)
		}
		q := onHopper(DType(dtype), mask)
		q.qkDim, q.vDim, q.queries, q.keys, q.dropout, q.grad = r.QK, r.V, r.S, r.Keys, r.Dropout > 0, r.Grad
		if r.GQA {
			q.kvHeads = 2
		}
		rows++
		seen[r.Pick]++
		if kernelNames[q.Pick()] != r.Pick {
			t.Errorf("%s: %s, torch picked %s", scan.Text(), reason(q), r.Pick)
		}
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	if rows != 5400 || len(seen) != 4 {
		t.Errorf("%d rows, picks %v", rows, seen)
	}
}

// TestChoiceOfCards has the rules that depend on the card, from sdp_utils.cpp.
func TestChoiceOfCards(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*AttentionQuery)
		want   string
	}{
		{"Hopper", func(*AttentionQuery) {}, "cudnn (first in order)"},
		{"Hopper with an older cuDNN", func(q *AttentionQuery) { q.cudnn = 91002 }, "flash (first in order)"},
		{"Ampere", func(q *AttentionQuery) { q.major = 8 }, "flash (first in order)"},
		{"Ampere, a mask", func(q *AttentionQuery) { q.major, q.mask = 8, boolMask }, "efficient (flash: a mask)"},
		{
			"Ampere, a mask and groups", func(q *AttentionQuery) { q.major, q.mask, q.kvHeads = 8, boolMask, 2 },
			"math (flash: a mask; efficient: grouped heads)",
		},
		{
			"Ada, wide heads", func(q *AttentionQuery) { q.major, q.minor, q.qkDim, q.vDim = 8, 9, 200, 200 },
			"efficient (flash: no backward for a head of 200 on sm89)",
		},
		{"Ada, 256 without dropout", func(q *AttentionQuery) { q.major, q.minor, q.qkDim, q.vDim = 8, 9, 256, 256 }, "flash (first in order)"},
		{
			"Ada, 256 with dropout", func(q *AttentionQuery) { q.major, q.minor, q.qkDim, q.vDim, q.dropout = 8, 9, 256, 256, true },
			"efficient (flash: no backward for a head of 256 on sm89)",
		},
		{
			"Ada, wide heads, no gradient", func(q *AttentionQuery) { q.major, q.minor, q.qkDim, q.vDim, q.grad = 8, 9, 200, 200, false },
			"flash (first in order)",
		},
		{"Turing, bfloat16", func(q *AttentionQuery) { q.major, q.minor = 7, 5 }, "math (flash: sm75; efficient: bfloat16 on sm75)"},
		{"Turing, float16", func(q *AttentionQuery) { q.major, q.minor, q.dtype = 7, 5, Float16 }, "efficient (flash: sm75)"},
		{
			"Turing, float32, odd heads", func(q *AttentionQuery) { q.major, q.minor, q.dtype, q.qkDim, q.vDim = 7, 5, Float32, 33, 33 },
			"efficient (flash: sm75)",
		},
		{"Blackwell", func(q *AttentionQuery) { q.major = 10 }, "cudnn (first in order)"},
		{"Blackwell, 256", func(q *AttentionQuery) { q.major, q.qkDim, q.vDim = 10, 256, 256 }, "flash (cudnn: a head of 256 is wider than 128)"},
		{
			"Ampere, DeepSeek", func(q *AttentionQuery) { q.major, q.qkDim, q.vDim = 8, 192, 128 },
			"efficient (flash: keys of 192 and values of 128)",
		},
		{"Hopper, DeepSeek", func(q *AttentionQuery) { q.qkDim, q.vDim = 192, 128 }, "cudnn (first in order)"},
		{"Blackwell, DeepSeek", func(q *AttentionQuery) { q.major, q.qkDim, q.vDim = 10, 192, 128 }, "cudnn (first in order)"},
		{"GeForce Blackwell", func(q *AttentionQuery) { q.major = 12 }, "flash (first in order)"},
		{"float32", func(q *AttentionQuery) { q.dtype = Float32 }, "efficient (cudnn: float32; flash: float32)"},
		{
			"one query with dropout", func(q *AttentionQuery) { q.queries, q.dropout, q.mask = 1, true, noMask },
			"flash (cudnn: a single query with dropout)",
		},
		{
			"nothing to see", func(q *AttentionQuery) { q.keys = 0 },
			"math (cudnn: an empty sequence; flash: an empty sequence; efficient: an empty sequence)",
		},
	} {
		q := onHopper(BFloat16, causalMask)
		c.change(&q)
		if got := reason(q); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestChoiceDocumented has the table of docs/measured/plan.md, as `tools/bench/plan/measure.py sdpa`
// printed it.
func TestChoiceDocumented(t *testing.T) {
	for _, width := range [][2]int{{64, 64}, {128, 128}, {192, 128}, {256, 256}} {
		for _, dropout := range []bool{false, true} {
			for mask, bf16 := range map[maskKind]Backend{causalMask: CuDNNAttention, boolMask: CuDNNAttention, gradMask: EfficientAttention} {
				for dtype, want := range map[DType]Backend{BFloat16: bf16, Float32: EfficientAttention} {
					q := onHopper(dtype, mask)
					q.qkDim, q.vDim, q.queries, q.keys, q.dropout = width[0], width[1], 1024, 1024, dropout
					if q.Pick() != want {
						t.Errorf("%+v: %s, torch picked %s", q, reason(q), kernelNames[want])
					}
				}
			}
		}
	}
}
