package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/safetensors"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// files are the tensors of a checkpoint of a config, in a type.
func files(t *testing.T, config, dtype string) []safetensors.Tensor {
	t.Helper()
	p, _ := planOf(t, config, "batch", "1", "seq", "32", "dtype", "bf16")
	var out []safetensors.Tensor
	for _, w := range p.run.weights {
		if !w.Tied {
			out = append(out, safetensors.Tensor{Name: w.Name, DType: dtype, Shape: slices.Clone(w.Tensor.Shape()), Bytes: uint64(2 * w.Elements())})
		}
	}
	return out
}

// A config and the files of its own checkpoint go together, in the forms that
// files come in; those of another model do not.
func TestWeightsAreOfTheModel(t *testing.T) {
	short.Skip(t)
	for _, config := range small {
		config = fmt.Sprintf(config, 2)
		own := files(t, config, "BF16")
		change := func(f func(list []safetensors.Tensor) []safetensors.Tensor) []safetensors.Tensor {
			list := slices.Clone(own)
			for i := range list {
				list[i].Shape = slices.Clone(list[i].Shape)
			}
			return f(list)
		}
		wide := slices.IndexFunc(own, func(x safetensors.Tensor) bool { return len(x.Shape) == 2 && x.Shape[0] != x.Shape[1] })
		layer := slices.IndexFunc(own, func(x safetensors.Tensor) bool { return layerNumber.MatchString(x.Name) })
		for name, c := range map[string]struct {
			tensors []safetensors.Tensor
			refused string
		}{
			"its own":    {own, ""},
			"one file":   {own[:3], ""},
			"a buffer":   {append(slices.Clone(own), safetensors.Tensor{Name: "a.buffer", DType: "BF16", Shape: []int64{3}, Bytes: 6}), ""},
			"multimodal": {change(func(l []safetensors.Tensor) []safetensors.Tensor { l[0].Name = "language_model." + l[0].Name; return l }), ""},
			"transposed": {change(func(l []safetensors.Tensor) []safetensors.Tensor { slices.Reverse(l[wide].Shape); return l }), "the files are of another model: " + own[wide].Name + " is ["},
			"more layers": {change(func(l []safetensors.Tensor) []safetensors.Tensor {
				l[layer].Name = layerNumber.ReplaceAllString(l[layer].Name, ".77$1")
				return l
			}), "77"},
			"other names": {[]safetensors.Tensor{{Name: "tower.0.w", DType: "BF16", Shape: []int64{2}, Bytes: 4}}, "named as theirs are, tower.0.w for one"},
		} {
			if name == "more layers" && strings.Contains(config, "deepseek_v3") {
				c.refused = "" // its checkpoints have a layer that is not built
			}
			q := Question{Model: readModel(t, config), Options: options(t, "batch", "1", "seq", "32"), Weights: NewWeights(c.tensors), NoLevers: true}
			_, err := Ask(t.Context(), q)
			axis := Axis{Name: "batch", Values: []string{"1", "2"}}
			if _, swept := Sweep(t.Context(), q, []Axis{axis}); (swept == nil) != (err == nil) {
				t.Errorf("%s of %.40s: a sweep says %v, a plan %v", name, config, swept, err)
			}
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s of %.40s: %v, want %q", name, config, err, c.refused)
			}
		}
	}
}

// The type of the weights is --dtype, else that of the files, else the config's.
func TestTypeOfTheWeights(t *testing.T) {
	config := fmt.Sprintf(small[0], 2) // in bf16
	own := files(t, config, "F16")
	eight := files(t, config, "F8_E4M3")
	mixed := slices.Clone(own)
	mixed[0].DType, mixed[1].DType = "F32", "U8"
	for name, tt := range map[string]struct {
		tensors     []safetensors.Tensor
		pairs       []string
		assumed     string
		notModelled string
		refused     string
	}{
		"none":        {nil, nil, "--dtype bf16: the config's dtype", "", ""},
		"files":       {own, nil, "--dtype fp16: the type of the weights' files", "", ""},
		"given":       {own, []string{"dtype", "fp32"}, "", "", ""},
		"mixed":       {mixed, nil, "of F32: planned as fp16 as all the others", "of U8: planned as fp16", ""},
		"fp8 alone":   {eight, nil, "", "", "the weights' files are mostly F8_E4M3, and plans are for fp32, bf16 and fp16: give dtype bf16"},
		"fp8 as bf16": {eight, []string{"dtype", "bf16"}, "", "the weights' files are mostly F8_E4M3: planned as bf16", ""},
	} {
		q := Question{Model: readModel(t, config), Options: options(t, append([]string{"batch", "1", "seq", "32"}, tt.pairs...)...), NoLevers: true}
		if tt.tensors != nil {
			q.Weights = NewWeights(tt.tensors)
		}
		a, err := Ask(t.Context(), q)
		if err != nil || tt.refused != "" {
			if err == nil || tt.refused == "" || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%s: %v, want %q", name, err, tt.refused)
			}
			continue
		}
		has := func(list []string, part string) bool {
			return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, part) })
		}
		if !has(a.Assumed, tt.assumed) || tt.notModelled != "" && !has(a.NotModelled, tt.notModelled) || tt.notModelled == "" && len(a.NotModelled) > 0 {
			t.Errorf("%s: assumed %q, not modelled %q", name, a.Assumed, a.NotModelled)
		}
	}
}
