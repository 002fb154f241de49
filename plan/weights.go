package plan

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/plan/job"
	"github.com/ashlar-mem/ashlar/plan/safetensors"
)

// Weights is what the files of a checkpoint hold.
type Weights struct {
	elements int64
	dtype    job.DType // of most bytes; empty if it is none that can be planned
	mixed    []string  // other types in the files
}

// NewWeights sums up the headers of a checkpoint.
func NewWeights(tensors []safetensors.Tensor) *Weights {
	w := &Weights{}
	sums := map[string]uint64{}
	most := ""
	var order []string
	for i := range tensors {
		t := &tensors[i]
		w.elements += int64(t.Elements())
		if sums[t.DType] == 0 {
			order = append(order, t.DType)
		}
		sums[t.DType] += t.Bytes
		if sums[t.DType] > sums[most] {
			most = t.DType
		}
	}
	w.dtype = map[string]job.DType{"F32": job.FP32, "BF16": job.BF16, "F16": job.FP16}[most]
	for _, d := range order {
		if d != most {
			w.mixed = append(w.mixed, fmt.Sprintf("%s of %s", units.Size(sums[d]), d))
		}
	}
	return w
}

// choose takes the type of the weights from the files, if nobody named it.
func (w *Weights) choose(o Options) (Options, []string) {
	if w == nil || w.dtype == "" || o.Has("dtype") || o.Has("autocast") {
		return o, nil
	}
	return o.with("dtype", string(w.dtype)), []string{fmt.Sprintf("--dtype %s: the type of the weights' files", w.dtype)}
}

// notes say where files and plan differ.
func (w *Weights) notes(parameters int64) []string {
	if w == nil {
		return nil
	}
	var out []string
	if w.elements != parameters {
		out = append(out, fmt.Sprintf("the weights' files hold %s elements and the config makes %s parameters: the config is planned", units.Count(w.elements), units.Count(parameters)))
	}
	for _, m := range w.mixed {
		out = append(out, "the weights' files hold "+m+": planned as all the others")
	}
	return out
}
