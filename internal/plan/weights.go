package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Weights is what the files of a checkpoint hold.
type Weights struct {
	tensors  []safetensors.Tensor
	elements int64
	most     string       // the type of most bytes, as the files name it
	dtype    model.DType  // the same; empty if it cannot be planned
	others   []otherType  // other types in the files
	packed   *packedFiles // what is quantised; nil if nothing is
}

// otherType is what the files hold in a type that is not that of most of them.
type otherType struct {
	name  string
	bytes uint64
}

// fileTypes are the types of files that can be planned.
var fileTypes = map[string]model.DType{"F32": model.FP32, "BF16": model.BF16, "F16": model.FP16}

// NewWeights sums up the headers of a checkpoint.
func NewWeights(tensors []safetensors.Tensor) *Weights {
	w := &Weights{tensors: tensors, packed: findPacked(tensors)}
	sums := map[string]uint64{}
	var order []string
	for i := range tensors {
		t := &tensors[i]
		if w.packed.has(t.Name) {
			continue
		}
		w.elements += int64(t.Elements())
		if !slices.Contains(order, t.DType) {
			order = append(order, t.DType)
		}
		sums[t.DType] += t.Bytes
		if w.most == "" || sums[t.DType] > sums[w.most] {
			w.most = t.DType
		}
	}
	w.dtype = fileTypes[w.most]
	for _, d := range order {
		if d != w.most {
			w.others = append(w.others, otherType{d, sums[d]})
		}
	}
	return w
}

// Bytes is the size of the tensors; 0 without files.
func (w *Weights) Bytes() uint64 {
	if w == nil {
		return 0
	}
	var n uint64
	for i := range w.tensors {
		n += w.tensors[i].Bytes
	}
	return n
}

// choose takes the type of the weights from the files, if nobody named it: that
// is what from_pretrained loads them in. The config's comes after it.
func (w *Weights) choose(o Options) (Options, []string, error) {
	switch {
	case w == nil || o.Has("dtype"):
		return o, nil, nil
	case w.dtype == "":
		return o, nil, problem.New("the weights' files are mostly %s, and plans are for fp32, bf16 and fp16: give {dtype} bf16 to plan the model in that type", w.most)
	case o.Has("autocast"):
		return o, nil, nil
	}
	return o.with("dtype", string(w.dtype)), []string{fmt.Sprintf("--dtype %s: the type of the weights' files", w.dtype)}, nil
}

// check compares the files with the model of the config. Names that only one of
// them has are no error: some files may be missing, files may have buffers, and
// transformers joins the experts of older ones.
func (w *Weights) check(m *model.Model, params []hf.Parameter) error {
	if w == nil || len(params) == 0 {
		return nil
	}
	shapes, kinds := map[string][]int64{}, map[string]bool{}
	base := baseName(params)
	for _, p := range params {
		for _, name := range []string{p.Name, strings.TrimPrefix(p.Name, base)} {
			shapes[name] = p.Tensor.Shape()
			kinds[layerNumber.ReplaceAllString(name, ".*$1")] = true
		}
	}
	found, err := w.packed.check(m, shapes)
	if err != nil {
		return err
	}
	for i := range w.tensors {
		t := &w.tensors[i]
		if w.packed.has(t.Name) {
			continue
		}
		// A multimodal model has the text's names under its own.
		name := t.Name
		for _, outer := range outerNames {
			if _, ok := shapes[name]; !ok {
				name = strings.TrimPrefix(name, outer)
			}
		}
		shape, ok := shapes[name]
		switch {
		case ok && !sameShape(shape, t.Shape):
			return otherModel("%s is %v there, and the config makes it %v", t.Name, t.Shape, shape)
		case ok:
			found = true
		case kinds[layerNumber.ReplaceAllString(name, ".*$1")] && m.Family != "deepseek_v3": // which has a layer more, for another objective
			return otherModel("they have %s, and the config has %d layers", t.Name, m.Layers)
		}
	}
	if !found {
		return otherModel("%s has no parameter that is named as theirs are, %s for one", m.Class, w.tensors[0].Name)
	}
	return nil
}

// outerNames are what a multimodal model has before the names of its text model.
var outerNames = []string{"language_model.", "model.language_model."}

// OtherModelError says that the weights' files are not those of the config.
type OtherModelError struct{ What string }

func (e *OtherModelError) Error() string { return "the files are of another model: " + e.What }

func otherModel(format string, args ...any) error {
	return &OtherModelError{What: fmt.Sprintf(format, args...)}
}

// baseName is what the names of the base model begin with. Checkpoints of the
// base alone do not have it.
func baseName(params []hf.Parameter) string {
	for _, prefix := range []string{"model.", "transformer.", "bert.", "vit."} {
		if slices.ContainsFunc(params, func(p hf.Parameter) bool { return strings.HasPrefix(p.Name, prefix) }) {
			return prefix
		}
	}
	return ""
}

// sameShape compares shapes without regard to dimensions of one.
func sameShape(a, b []int64) bool {
	plain := func(s []int64) []int64 {
		return slices.DeleteFunc(slices.Clone(s), func(n int64) bool { return n == 1 })
	}
	return slices.Equal(plain(a), plain(b))
}

// notes say where files and plan differ: what is assumed, and what is not
// modelled.
func (w *Weights) notes(parameters int64, planned model.DType) (assumed, notModelled []string) {
	if w == nil {
		return nil, nil
	}
	if w.elements != parameters && w.packed == nil {
		assumed = append(assumed, fmt.Sprintf("the weights' files hold %s elements and the config makes %s parameters: the config is planned", units.Count(w.elements), units.Count(parameters)))
	}
	if w.dtype == "" {
		notModelled = append(notModelled, fmt.Sprintf("the weights' files are mostly %s: planned as %s", w.most, planned))
	}
	for _, o := range w.others {
		text := fmt.Sprintf("the weights' files hold %s of %s: planned as %s", units.Size(o.bytes), o.name, planned)
		if fileTypes[o.name] != "" {
			assumed = append(assumed, text+" as all the others")
		} else {
			notModelled = append(notModelled, text)
		}
	}
	return assumed, notModelled
}
