package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

// quantConfig puts a quantization_config into a config.
func quantConfig(config, quant string) string {
	return strings.Replace(config, "{", `{"quantization_config": `+quant+`, `, 1)
}

// Quantised weights are planned as the config or --quant says; what the libraries
// cannot do is refused with what to do.
func TestQuantised(t *testing.T) {
	plain := fmt.Sprintf(small[0], 2)
	const (
		nf4  = `{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4","bnb_4bit_compute_dtype":"bfloat16"}`
		fp8  = `{"quant_method":"fp8"}`
		quip = `{"quant_method":"quip"}`
	)
	for _, c := range []struct {
		config  string
		pairs   []string
		method  string // "" for none
		refused string
	}{
		{plain, nil, "", ""},
		{plain, []string{"quant", "none"}, "", ""},
		{plain, []string{"quant", "nf4"}, "", "quantised weights (nf4) are frozen: give lora 16 to train adapters on them, or quant none"},
		{plain, []string{"quant", "nf4", "lora", "8"}, "nf4", ""},
		{plain, []string{"quant", "nf4-double", "lora", "8"}, "nf4-double", ""},
		{plain, []string{"quant", "int8", "lora", "8", "shard", "ddp:2"}, "int8", ""},
		{plain, []string{"quant", "int8", "lora", "8", "shard", "fsdp:2"}, "", "shard fsdp:2 with int8 weights is not planned: ddp:N"},
		{plain, []string{"quant", "awq", "generate", "4", "shard", "tp:2"}, "", "shard tp:2 with awq weights is not planned"},
		{plain, []string{"quant", "fp8", "generate", "4", "shard", "tp:2"}, "fp8", ""},
		{plain, []string{"quant", "fp8", "lora", "8"}, "", "fp8 weights cannot be trained, nor adapters on them: give quant none"},
		{plain, []string{"quant", "fp8", "generate", "4"}, "fp8", ""},
		{plain, []string{"quant", "mxfp4", "generate", "4"}, "", "quant mxfp4 is for the experts of gpt_oss, not for llama"},
		{quantConfig(plain, nf4), []string{"lora", "8"}, "nf4", ""},
		{quantConfig(plain, nf4), []string{"lora", "8", "quant", "nf4"}, "nf4", ""},
		{quantConfig(plain, nf4), []string{"lora", "8", "quant", "int8"}, "", "quant int8: the config's weights are quantised already (nf4); leave it out, or give quant none"},
		{quantConfig(plain, nf4), []string{"quant", "none"}, "", ""},
		{quantConfig(plain, fp8), nil, "", "fp8 weights cannot be trained"},
		{quantConfig(plain, quip), nil, "", "the config has a quantization_config (quip) that cannot be planned: give quant none to plan the dequantised model"},
		{quantConfig(plain, quip), []string{"quant", "none"}, "", ""},
	} {
		j, _, err := options(t, append([]string{"batch", "1", "seq", "32"}, c.pairs...)...).Job(readModel(t, c.config))
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%q: %v, want %q", c.pairs, err, c.refused)
			}
		case err != nil:
			t.Errorf("%q: %v", c.pairs, err)
		case j.Quant == nil && c.method != "", j.Quant != nil && j.Quant.String() != c.method:
			t.Errorf("%q: %v", c.pairs, j.Quant)
		case j.Quant != nil && c.method != "fp8" && j.LoRA.DType != model.FP32:
			t.Errorf("%q: adapters are %s", c.pairs, j.LoRA.DType)
		}
	}
	p, assumed := planOf(t, quantConfig(plain, fp8), "batch", "1", "seq", "32", "quant", "none")
	if !slices.Contains(assumed, "quantization_config (fp8) is left out: planned as dequantised bf16 weights") {
		t.Errorf("assumed %q", assumed)
	}
	if same, _ := planOf(t, plain, "batch", "1", "seq", "32"); same.requested != p.requested {
		t.Errorf("takes %d, without the quantization_config %d", p.requested, same.requested)
	}
}

// An answer says what rests on sources, and what the allocator does not see.
func TestQuantisedAnswer(t *testing.T) {
	config := strings.Replace(fmt.Sprintf(small[0], 2), `"hidden_size": 256`, `"hidden_size": 4096`, 1)
	q := Question{
		Model: readModel(t, config), NoLevers: true,
		Options: options(t, "batch", "1", "seq", "32", "quant", "nf4", "lora", "64", "optimizer", "paged-adamw-8bit"),
	}
	a, err := Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if a.Measured || len(a.RestsOn) != 3 || !strings.Contains(strings.Join(a.RestsOn, "; "), model.BitsAndBytes) {
		t.Errorf("measured %v, rests on %q", a.Measured, a.RestsOn)
	}
	// Two layers of seven Linears, each with 4096 inputs or outputs: one matrix of
	// its adapter has 64 x 4096 elements, the other less than are paged.
	if len(a.Beside) != 1 || a.Beside[0] != (Beside{"optimizer state", "managed", 2 * 2 * 7 * 64 * 4096}) {
		t.Errorf("beside: %+v", a.Beside)
	}
	if span := a.Range.High - a.Range.Low; span < a.PeakAllocated/12 {
		t.Errorf("a range of %d for what was not measured", span)
	}
	// fp8 on a card that has no such kernels is dequantised.
	q.Options = options(t, "batch", "1", "seq", "32", "quant", "fp8", "generate", "2")
	q.Capacity = Capacity{Card: gpuOf(t, "a100-80")}
	if a, err = Ask(t.Context(), q); err != nil || !slices.ContainsFunc(a.Assumed, func(s string) bool { return strings.HasPrefix(s, "fp8 needs compute capability 8.9") }) {
		t.Errorf("%v %+v", err, a)
	}
}

// The headers of a quantised checkpoint give the same plan as its config, and say
// it alone where the config does not.
func TestQuantisedFiles(t *testing.T) {
	plain := fmt.Sprintf(small[0], 2)
	for name, config := range map[string]string{
		"nf4":        `{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4","bnb_4bit_compute_dtype":"bfloat16"}`,
		"nf4-double": `{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4","bnb_4bit_use_double_quant":true,"bnb_4bit_compute_dtype":"bfloat16"}`,
		"int8":       `{"quant_method":"bitsandbytes","load_in_8bit":true}`,
		"awq":        `{"quant_method":"awq","bits":4,"group_size":128}`,
		"gptq":       `{"quant_method":"gptq","bits":4,"group_size":128}`,
		"fp8":        `{"quant_method":"fp8"}`,
	} {
		quant := model.NewQuant(name)
		var list []safetensors.Tensor
		for _, f := range files(t, plain, "BF16") {
			module, ok := strings.CutSuffix(f.Name, ".weight")
			if !ok || len(f.Shape) != 2 || !quant.Converts(module) {
				list = append(list, f)
				continue
			}
			for _, p := range quant.Tensors(f.Shape[1], f.Shape[0]) {
				if p.Name != "weight.nested_offset" { // which is in the words
					p.Name = module + "." + p.Name
					list = append(list, p)
				}
			}
			if strings.HasPrefix(name, "nf4") {
				list = append(list, safetensors.New(module+".weight.quant_state.bitsandbytes__nf4", "U8", 81))
			}
		}
		ask := func(config string, weights []safetensors.Tensor) (*Answer, error) {
			q := Question{Model: readModel(t, config), Options: options(t, "batch", "1", "seq", "32", "generate", "2"), NoLevers: true}
			if weights != nil {
				q.Weights = NewWeights(weights)
			}
			return Ask(t.Context(), q)
		}
		want, err := ask(quantConfig(plain, config), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []string{quantConfig(plain, config), plain} {
			got, err := ask(c, list)
			if err != nil || got.PeakRequested != want.PeakRequested || got.Measured || len(got.NotModelled) > 0 {
				t.Errorf("%s: %v, takes %d, by the config %d; not modelled %q", name, err, got.PeakRequested, want.PeakRequested, got.NotModelled)
			}
		}
		cut := slices.Clone(list)
		i := slices.IndexFunc(cut, func(x safetensors.Tensor) bool {
			return strings.Contains(x.Name, "q_proj") && strings.HasSuffix(x.Name, "weight")
		})
		cut[i].Bytes /= 2
		var other *OtherModelError
		if _, err := ask(quantConfig(plain, config), cut); !errors.As(err, &other) {
			t.Errorf("%s: half of q_proj: %v", name, err)
		}
	}
}

// Checkpoints have the experts of a layer stacked, as mxfp4 does, or one by one.
func TestQuantisedExperts(t *testing.T) {
	config := func(model string) string {
		i := slices.IndexFunc(small, func(c string) bool { return strings.Contains(c, `"`+model+`"`) })
		return fmt.Sprintf(small[i], 2)
	}
	// expert are the tensors of one Linear of one expert.
	expert := func(q *model.Quant, layer string, i int, name string, in, out int64) (list []safetensors.Tensor) {
		for _, p := range q.Tensors(in, out) {
			p.Name = fmt.Sprintf("%s.%d.%s.%s", layer, i, name, p.Name)
			list = append(list, p)
		}
		return list
	}
	for _, c := range []struct{ family, quant string }{
		{"gpt_oss", `{"quant_method":"mxfp4"}`},
		{"deepseek_v3", `{"quant_method":"awq","bits":4,"group_size":32}`},
		{"mixtral", `{"quant_method":"gptq","bits":4,"group_size":32}`},
	} {
		plain := config(c.family)
		q := readModel(t, quantConfig(plain, c.quant)).Quant
		var list []safetensors.Tensor
		for _, f := range files(t, plain, "BF16") {
			module := strings.TrimSuffix(f.Name, ".weight")
			layer, stack, isExperts := strings.Cut(f.Name, ".experts.")
			layer += ".experts"
			switch {
			case isExperts && q.Method == model.MXFP4 && len(f.Shape) == 3:
				for _, p := range q.Stacked(f.Shape[0], 1, f.Shape[1], f.Shape[2]) { // gpt_oss' lie the other way round
					p.Name = f.Name + "_" + p.Name
					list = append(list, p)
				}
			case isExperts && q.Method != model.MXFP4:
				for i := range int(f.Shape[0]) {
					if stack == "down_proj" {
						list = append(list, expert(q, layer, i, "down_proj", f.Shape[2], f.Shape[1])...)
						continue
					}
					list = append(list, expert(q, layer, i, "gate_proj", f.Shape[2], f.Shape[1]/2)...)
					list = append(list, expert(q, layer, i, "up_proj", f.Shape[2], f.Shape[1]/2)...)
				}
			case module != f.Name && len(f.Shape) == 2 && !strings.HasSuffix(module, ".gate") && q.Converts(module): // but for routers
				for _, p := range q.Tensors(f.Shape[1], f.Shape[0]) {
					p.Name = module + "." + p.Name
					list = append(list, p)
				}
			default:
				list = append(list, f)
			}
		}
		weights := func(w *Weights) uint64 {
			a, err := Ask(t.Context(), Question{
				Model: readModel(t, quantConfig(plain, c.quant)), Weights: w, NoLevers: true, Options: options(t, "batch", "1", "seq", "32", "generate", "2"),
			})
			if err != nil {
				t.Fatalf("%s: %v", c.family, err)
			}
			i := slices.IndexFunc(a.Components, func(x Component) bool { return x.Name == "parameters" })
			return a.Components[i].Bytes
		}
		if got, want := weights(NewWeights(list)), weights(nil); got != want {
			t.Errorf("%s: weights of %d bytes by the files, %d by the config", c.family, got, want)
		}
	}
}

// What is kept on the host is not on the GPU.
func TestOffload(t *testing.T) {
	plain := fmt.Sprintf(small[0], 2)
	kinds := func(pairs ...string) (map[string]uint64, map[string]uint64) {
		q := Question{Model: readModel(t, plain), Options: options(t, append([]string{"batch", "1", "seq", "32", "zero-grad", "keep"}, pairs...)...), NoLevers: true}
		a, err := Ask(t.Context(), q)
		if err != nil {
			t.Fatalf("%q: %v", pairs, err)
		}
		gpu, host := map[string]uint64{}, map[string]uint64{}
		for _, c := range a.Components {
			gpu[c.Name] = c.Bytes
		}
		for _, b := range a.Beside {
			host[b.What] += b.Bytes
		}
		return gpu, host
	}
	for _, c := range []struct {
		shard, what string
		params      bool
		bytes       uint64 // of states, for each parameter
	}{{"zero1:1", "optimizer", false, 8}, {"zero2:1", "optimizer", false, 8}, {"zero3:1", "optimizer", false, 8}, {"zero3:1", "params", true, 8}, {"fsdp:1", "params", true, 4}} {
		gpu, host := kinds("shard", c.shard, "offload", c.what)
		p, _ := planOf(t, plain, "batch", "1", "seq", "32")
		n := uint64(p.run.parameters)
		if gpu["optimizer state"] != 0 || gpu["master weights"] != 0 || host["optimizer state"] != c.bytes*n {
			t.Errorf("%s, %s: %v on the GPU, %v on the host, of %d parameters", c.shard, c.what, gpu, host, n)
		}
		if (gpu["parameters"] == 0) != c.params || (host["parameters"] == 2*n) != c.params {
			t.Errorf("%s, %s: parameters: %v on the GPU, %v on the host", c.shard, c.what, gpu, host)
		}
	}
	for _, c := range []struct {
		pairs   []string
		refused string
	}{
		{[]string{"offload", "optimizer"}, "offload optimizer is DeepSpeed's: give shard zero1:N"},
		{[]string{"offload", "params"}, "offload params is for ranks that divide the weights"},
		{[]string{"offload", "optimizer", "shard", "fsdp:2"}, "write offload params"},
		{[]string{"offload", "optimizer", "shard", "zero2:2", "optimizer", "adamw-8bit"}, "bitsandbytes' optimizers run on the GPU"},
		{[]string{"offload", "optimizer", "shard", "zero2:2", "optimizer", "adafactor"}, "a CPU form of Adam alone"},
	} {
		_, _, err := options(t, append([]string{"batch", "1", "seq", "32"}, c.pairs...)...).Job(readModel(t, plain))
		if err == nil || !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%q: %v, want %q", c.pairs, err, c.refused)
		}
	}
}
