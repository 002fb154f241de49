package plan

import (
	"regexp"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

// packedFiles are the quantised weights of a checkpoint.
type packedFiles struct {
	method  model.QuantMethod
	modules map[string][]safetensors.Tensor // as model.Quant.Files has them
	names   map[string]bool                 // of all their tensors
	double  bool                            // bitsandbytes' scales are quantised too
}

// packedParts are the ends of names that only quantised weights have, each with
// the method that has it. A longer end comes before one that it ends in.
var packedParts = []struct {
	end    string
	method model.QuantMethod
}{
	{".weight.nested_quant_map", model.NF4},
	{".weight.nested_absmax", model.NF4},
	{".weight.quant_map", model.NF4},
	{".weight.absmax", model.NF4},
	{".weight.quant_state.bitsandbytes__nf4", model.NF4},
	{".weight.quant_state.bitsandbytes__fp4", model.FP4},
	{".SCB", model.Int8},
	{".weight_format", model.Int8},
	{".qweight", model.AWQ},
	{".qzeros", model.AWQ},
	{".scales", model.AWQ},
	{".g_idx", model.GPTQ},
	{".weight_scale_inv", model.FP8},
	{".activation_scale", model.FP8},
	{"_blocks", model.MXFP4},
	{"_scales", model.MXFP4},
	{".weight_packed", model.Compressed},
	{".weight_scale", model.Compressed},
	{".weight_shape", model.Compressed},
	{".weight_zero_point", model.Compressed},
	{".weight_g_idx", model.Compressed},
}

// findPacked finds the quantised weights among the tensors of a checkpoint; nil
// if there are none.
func findPacked(tensors []safetensors.Tensor) *packedFiles {
	f := &packedFiles{modules: map[string][]safetensors.Tensor{}, names: map[string]bool{}}
	owner := map[string]bool{} // modules by the names of the files
	for i := range tensors {
		name := tensors[i].Name
		for _, p := range packedParts {
			module, ok := strings.CutSuffix(name, p.end)
			if !ok {
				continue
			}
			owner[module] = true
			f.names[name] = true
			if f.method == "" || p.method == model.FP4 || p.method == model.GPTQ {
				f.method = p.method
			}
			break
		}
	}
	if len(owner) == 0 {
		return nil
	}
	for i := range tensors {
		t := tensors[i]
		module, ok := strings.CutSuffix(t.Name, ".weight")
		if !f.names[t.Name] && !(ok && owner[module]) {
			continue
		}
		f.names[t.Name] = true
		f.add(t)
	}
	return f
}

// add puts a tensor to its module. What bitsandbytes keeps about a weight in
// words stays on the host, and so does the layout of its eight bits.
func (f *packedFiles) add(t safetensors.Tensor) {
	module, part := t.Name, ""
	for _, p := range packedParts {
		if m, ok := strings.CutSuffix(t.Name, p.end); ok {
			module, part = m, p.end
			break
		}
	}
	if part == "" {
		module = strings.TrimSuffix(t.Name, ".weight")
	}
	module = planName(module)
	switch part {
	case ".weight.quant_state.bitsandbytes__nf4", ".weight.quant_state.bitsandbytes__fp4", ".weight_format":
		return
	case ".weight.nested_absmax":
		f.double = true
		f.modules[module] = append(f.modules[module], safetensors.New("nested_offset", "F32"))
	}
	f.modules[module] = append(f.modules[module], t)
}

// expertName is the Linear of one expert in a checkpoint.
var expertName = regexp.MustCompile(`^(.*\.experts)\.\d+\.(gate_proj|up_proj|down_proj|w1|w2|w3)$`)

// planName is what a plan calls the module of a checkpoint. The experts of a
// layer are two stacked weights.
func planName(module string) string {
	for _, outer := range outerNames {
		module = strings.TrimPrefix(module, outer)
	}
	m := expertName.FindStringSubmatch(module)
	if m == nil {
		return module
	}
	layer := strings.Replace(m[1], "block_sparse_moe", "mlp", 1)
	if m[2] == "down_proj" || m[2] == "w2" {
		return layer + ".down_proj"
	}
	return layer + ".gate_up_proj"
}

// has reports whether a tensor is part of a quantised weight.
func (f *packedFiles) has(name string) bool { return f != nil && f.names[name] }

// quantise returns the model with its weights quantised as the files have them.
// The config says what headers do not: the type of bitsandbytes' computation,
// and the blocks of fp8.
func (w *Weights) quantise(m *model.Model, o Options) *model.Model {
	if w == nil || w.packed == nil || o.Get("quant") == noQuant {
		return m
	}
	out := *m
	q := model.Quant{Method: w.packed.method}
	if m.Quant != nil {
		q = *m.Quant
	} else if c := model.NewQuant(string(w.packed.method)); c != nil {
		q = *c
		q.Double = w.packed.double
	}
	q.Stored, q.Files = true, w.packed.modules
	out.Quant, out.Quantised = &q, string(q.Method)
	return &out
}

// check compares the packed weights with the shapes of the model, and reports
// whether there are any of its own.
func (f *packedFiles) check(m *model.Model, shapes map[string][]int64) (found bool, err error) {
	if f == nil || m.Quant == nil {
		return false, nil
	}
	for module, tensors := range f.modules {
		shape, ok := shapes[module+".weight"]
		if !ok || len(shape) != 2 {
			found = found || shapes[module] != nil
			continue
		}
		found = true
		want := m.Quant.Tensors(shape[1], shape[0])[0]
		for _, t := range tensors {
			if strings.HasSuffix(t.Name, want.Name) && t.Bytes != want.Bytes {
				return false, otherModel("%s has %d bytes there, and %v in %s takes %d", t.Name, t.Bytes, shape, m.Quant, want.Bytes)
			}
		}
	}
	return found, nil
}
