package serve

import (
	"encoding/json"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
)

// vLLM's modules have as many parameters as transformers counted, but for the rows
// that round the vocabulary up and the tables of rotary positions.
func TestParameters(t *testing.T) {
	seen := map[string]int{}
	compare := func(m *model.Model, params int64) {
		t.Helper()
		r := Request{Model: m, Card: card(t, "h200"), MaxModelLen: 64}
		if m.Head != model.HeadCausal || m.LeavesOut != nil {
			return
		}
		if err := r.settle(); err != nil {
			t.Fatalf("%s: %v", m.Class, err)
		}
		n := newNetwork(&r)
		n.build()
		var got int64
		for i := range n.Ledger.Tensors {
			if x := &n.Ledger.Tensors[i]; x.Death == ledger.Lives {
				got += int64(x.Bytes) / n.dtype.Size()
			}
		}
		tables := int64(1)
		if !m.Tied {
			tables = 2
		}
		got -= tables * (n.vocab() - int64(m.Vocab)) * n.wordDim()
		got -= int64(m.Rope.Tables) * int64(m.MaxPositions) * int64(m.Rope.Dim)
		if seen[m.Family]++; got != params {
			t.Errorf("%s with %d layers: %d parameters, transformers has %d", m.Class, m.Layers, got, params)
		}
	}
	type counted struct {
		Family string
		Given  map[string]any
		Params int64
	}
	for _, want := range jsonl.Must[counted](t, "../../../testdata/plan/params.jsonl.gz") {
		want.Given["model_type"] = want.Family
		text, err := json.Marshal(want.Given)
		if err != nil {
			t.Fatal(err)
		}
		if m := read(t, string(text)); m.Runnable() == nil {
			compare(m, want.Params)
		}
	}
	type measured struct {
		Case   string             `json:"case"`
		Spec   plancompare.Fields `json:"spec"`
		Params int64              `json:"params"`
	}
	for _, c := range jsonl.Must[measured](t, "../../../testdata/plan/measured-families.jsonl.gz") {
		m, err := c.Spec.Model()
		if err != nil {
			t.Fatalf("%s: %v", c.Case, err)
		}
		compare(m, c.Params)
	}
	if len(seen) < 24 {
		t.Errorf("%d families: %v", len(seen), seen)
	}
}
