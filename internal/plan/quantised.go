package plan

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// quantised refuses a config of quantised weights, unless somebody says which
// type they are to be planned in: the model is then the one that dequantising
// gives.
func (r *request) quantised() error {
	how := r.m.Quantised
	if how == "" {
		return nil
	}
	if !r.o.Has("dtype") {
		return problem.New("the config has a quantization_config (%s), and plans are for unquantised weights: give {dtype} bf16 to plan the dequantised model", how)
	}
	r.assumed = append(r.assumed, fmt.Sprintf("quantization_config (%s) is left out: planned as dequantised %s weights", how, r.o.Get("dtype")))
	return nil
}
