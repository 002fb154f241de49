package eager

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
)

// recordedCall is a call on an H200 with what it allocated and freed.
type recordedCall struct {
	op      string
	thread  int
	in, out []Meta
	args    []any
	events  []int64
}

// readCalls reads calls that a dispatch mode recorded together with the events
// of the allocator.
func readCalls(t *testing.T) []recordedCall {
	f, err := os.Open("../../../testdata/dry/ops.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []recordedCall
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row [6]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		var c recordedCall
		var in, made [][4]any
		for i, to := range []any{&c.op, &c.thread, &in, &made, &c.args, &c.events} {
			if err := json.Unmarshal(row[i], to); err != nil {
				t.Fatal(err)
			}
		}
		c.in, c.out = metas(in), metas(made)
		for i, a := range c.args {
			if ref, ok := a.(map[string]any); ok {
				c.args[i] = Ref(int(ref["t"].(float64)))
			}
		}
		out = append(out, c)
	}
	return out
}

func metas(rows [][4]any) []Meta {
	out := make([]Meta, len(rows))
	list := func(v any) (n []int64) {
		for _, x := range v.([]any) {
			n = append(n, int64(x.(float64)))
		}
		return n
	}
	for i, r := range rows {
		m := Meta{}
		for d, name := range dtypeNames {
			if name == r[0].(string) {
				m.DType, m.Known = DType(d), true
			}
		}
		m.Shape = list(r[1])
		if r[2] != nil {
			m.Stride = list(r[2])
		}
		if m.Known && r[3].(string) == "cuda" {
			span := int64(1)
			for d, n := range m.Shape {
				if n == 0 {
					span = 0
					break
				}
				span += (n - 1) * m.Stride[d]
			}
			m.Bytes = span * m.DType.Size()
		}
		out[i] = m
	}
	return out
}

// TestRecordedCalls compares what kernels are said to allocate with what they
// allocated. Workspaces that stay, and outputs that are views of one another,
// are left out: what counts is the sequence of sizes.
func TestRecordedCalls(t *testing.T) {
	calls := readCalls(t)
	same, all, wrong := 0, 0, map[string]int{}
	examples := map[string]string{}
	for _, c := range calls {
		if composites[c.op] {
			continue
		}
		all++
		k := NewKernels(H200)
		// Handles of cuBLAS are there.
		for _, thread := range []int{0, 1} {
			k.Run(&Call{Op: "aten.addmm.default", Thread: thread, In: []Meta{
				{DType: Float32, Known: true, Shape: []int64{2}, Stride: []int64{1}},
				{DType: Float32, Known: true, Shape: []int64{2, 2}, Stride: []int64{2, 1}},
				{DType: Float32, Known: true, Shape: []int64{2, 2}, Stride: []int64{2, 1}},
			}})
		}
		fresh := make([]bool, len(c.out))
		for i := range fresh {
			fresh[i] = c.out[i].Bytes > 0
		}
		moves, _ := k.Run(&Call{Op: c.op, In: c.in, Out: c.out, Fresh: fresh, Args: c.args, Thread: c.thread})
		want, got := sizes(c.op, c.events), ""
		for _, m := range moves {
			if m.Free >= 0 {
				got += fmt.Sprintf(" -%d", moves[m.Free].Bytes)
			} else if m.Bytes > 0 {
				got += fmt.Sprintf(" %d", m.Bytes)
			}
		}
		if want == got {
			same++
			continue
		}
		wrong[c.op]++
		if examples[c.op] == "" {
			var shapes []string
			for i := range c.in {
				shapes = append(shapes, fmt.Sprint(c.in[i].DType, c.in[i].Shape, c.in[i].Stride))
			}
			examples[c.op] = fmt.Sprintf("%s %v\n    recorded%s\n    here    %s", strings.Join(shapes, " "), c.args, want, got)
		}
	}
	var ops []string
	for op := range wrong {
		ops = append(ops, op)
	}
	sort.Slice(ops, func(i, j int) bool { return wrong[ops[i]] > wrong[ops[j]] })
	for _, op := range ops {
		t.Logf("%d x %s %s", wrong[op], op, examples[op])
	}
	t.Logf("%d of %d calls are as recorded", same, all)
	if share := float64(same) / float64(all); share < leastRecorded {
		t.Errorf("%.1f %% of the calls are as recorded, want %.1f %%", 100*share, 100*leastRecorded)
	}
}

const leastRecorded = 0.985

// composites are ops that a dry run takes apart.
var composites = map[string]bool{"aten.conv2d.default": true, "aten.max_pool2d.default": true, "aten.to.dtype_layout": true, "aten.linear.default": true}

// sizes are the events, those of products without the workspaces of cuBLAS.
func sizes(op string, events []int64) string {
	out := ""
	for i, e := range events {
		product := i > 0 && (strings.Contains(op, "mm.") || strings.Contains(op, "linear."))
		if !product || e != 32<<20 && e != 1<<20 {
			out += fmt.Sprintf(" %d", e)
		}
	}
	return out
}
