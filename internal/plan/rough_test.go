package plan

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/checkpoint"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
)

// hidden is a measured case whose model_type nobody knows.
func hidden(t *testing.T, c *plancompare.BlindCase) (*checkpoint.Checkpoint, *model.Model, Options) {
	t.Helper()
	shape := maps.Clone(c.Spec["m"].(map[string]any))
	shape["model_type"] = "hidden"
	delete(shape, "fam")
	text, err := json.Marshal(shape)
	if err != nil {
		t.Fatal(err)
	}
	config, err := model.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Spec.Model()
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := c.Spec.Options()
	if err != nil {
		t.Fatal(err)
	}
	var o Options
	for _, p := range pairs {
		if err := o.Set(p[0], p[1]); err != nil {
			t.Fatal(err)
		}
	}
	return &checkpoint.Checkpoint{Class: "Hidden", Parts: []checkpoint.Part{{Class: "Hidden", Config: config}}}, m, o
}

// headers are what the files of a model would have.
func headers(t *testing.T, m *model.Model, o Options) []safetensors.Tensor {
	t.Helper()
	j, _, err := o.Job(m)
	if err != nil {
		t.Fatal(err)
	}
	run, err := preset517(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	var out []safetensors.Tensor
	for _, p := range run.weights {
		if !p.Tied {
			out = append(out, safetensors.New(p.Name, "BF16", p.Tensor.Shape()...))
		}
	}
	return out
}

// Runs that were measured lie within the rough plans that their models would have
// had if their family were not known, with headers and from the config alone.
func TestRoughBounds(t *testing.T) {
	all, err := plancompare.Blind()
	if err != nil {
		t.Fatal(err)
	}
	bounded := map[string]int{}
	for _, c := range all {
		if c.Limit > 0 || c.Spec.Conf() != "" {
			continue
		}
		for _, from := range []string{"headers", "config"} {
			part, m, o := hidden(t, &c)
			if from == "headers" {
				part.Parts[0].Tensors = headers(t, m, o)
			}
			a, err := AskRough(context.Background(), Question{Checkpoint: part, Options: o})
			if err != nil {
				if from == "headers" {
					t.Errorf("%s: %v", c.Name, err)
				}
				continue // without headers and sizes of a known kind
			}
			if from == "headers" && (a.Parameters != c.Params || a.ParametersLow != c.Params) {
				t.Errorf("%s: %d to %d parameters, measured %d", c.Name, a.ParametersLow, a.Parameters, c.Params)
			}
			if a.ParametersLow > c.Params || a.Low > c.PeakAllocated {
				t.Errorf("%s from %s: at least %d parameters and %d bytes, measured %d and %d", c.Name, from, a.ParametersLow, a.Low, c.Params, c.PeakAllocated)
			}
			if a.High == nil {
				continue
			}
			bounded[from]++
			if a.Parameters < c.Params-c.Params/1000 || *a.High < c.PeakReserved {
				t.Errorf("%s from %s: at most %d parameters and %d bytes, measured %d and %d", c.Name, from, a.Parameters, *a.High, c.Params, c.PeakReserved)
			}
			if a.Low < c.PeakAllocated/4 || *a.High > 3*c.PeakReserved {
				t.Errorf("%s from %s: from %d to %d bytes says nothing about %d", c.Name, from, a.Low, *a.High, c.PeakReserved)
			}
		}
	}
	if bounded["headers"] < 38 || bounded["config"] < 38 {
		t.Errorf("few cases have bounds: %v", bounded)
	}
}
