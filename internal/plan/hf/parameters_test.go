package hf

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
)

// Models have the parameters that transformers gives them, in its order, which
// is that of the optimizer's state. Of the largest models the file lists the
// first layer alone.
func TestParameters(t *testing.T) {
	rows, counted := map[string]int{}, map[string]int64{} // the second: of models whose fields are all defaults
	type parameters struct {
		Family string
		Given  map[string]any
		Params int64
		Named  [][2]any
	}
	for _, want := range jsonl.Must[parameters](t, "../../../testdata/plan/params.jsonl.gz") {
		defaults := len(want.Given) == 0
		want.Given["model_type"] = want.Family
		text, err := json.Marshal(want.Given)
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Read(strings.NewReader(string(text)))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		r := newRun(context.Background(), &model.Job{Model: m, Mode: model.Train, Batch: 1, Seq: 1, TargetSeq: 1})
		families[m.Family](r)
		n := (&Result{Parameters: r.params}).Count()
		rows[m.Family]++
		if defaults {
			counted[want.Family] = n
		}
		if want.Family == "gemma3" { // with a vision model, which is not planned; see below
			continue
		}
		if n != want.Params {
			t.Errorf("%s: %d parameters, transformers has %d", text, n, want.Params)
		}
		var names []string
		for _, p := range r.params {
			if !p.Tied {
				names = append(names, p.Name)
			}
		}
		for i, n := range want.Named {
			at := slices.Index(names, n[0].(string))
			if at < 0 || len(names) == len(want.Named) && at != i {
				t.Errorf("%s: parameter %d is %s in transformers", text, i, n[0])
				break
			}
		}
	}
	// Those of newer families are in TestNamedParameters.
	for family, n := range rows {
		if n < 9 {
			t.Errorf("%s: %d models", family, n)
		}
	}
	if len(rows) < 17 {
		t.Errorf("%d families", len(rows))
	}
	// A gemma3 is planned as its text model.
	if counted["gemma3"] == 0 || counted["gemma3"] != counted["gemma3_text"] {
		t.Errorf("gemma3 has %d parameters, gemma3_text %d", counted["gemma3"], counted["gemma3_text"])
	}
}
