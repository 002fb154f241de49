package hf

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/plan/eager"
	"github.com/ashlar-mem/ashlar/plan/job"
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// Preset names what the package models.
const Preset = "hf-5.17"

// Result is a planned run.
type Result struct {
	Ledger      *ledger.Ledger
	Parameters  []Parameter
	NotModelled []string
	Assumed     []string
}

// Count is the number of parameters, tied ones once.
func (r *Result) Count() int64 {
	var n int64
	for _, p := range r.Parameters {
		n += p.Elements()
	}
	return n
}

// run is a job on its way.
type run struct {
	ctx context.Context
	m   *eager.Machine
	job *job.Job
	net network

	dtype    eager.DType
	trains   bool
	params   []Parameter
	linears  []*linear
	optimize func(step int)
}

// Run plans a job.
func Run(ctx context.Context, j *job.Job) (*Result, error) {
	device := eager.H200
	r := &run{ctx: ctx, m: eager.New(device), job: j, dtype: dtypeOf(j.DType), trains: j.Mode != job.Generate}
	build, ok := families[j.Model.Family]
	if !ok {
		return nil, fmt.Errorf("preset %s does not know the family %s", Preset, j.Model.Family)
	}
	r.m.Ledger.Begin("build", 0)
	r.net = build(r)
	if err := r.train(); err != nil {
		return nil, err
	}
	return &Result{Ledger: r.m.Ledger, Parameters: r.params}, nil
}

// families are the constructors of the networks.
var families = map[string]func(*run) network{
	"llama": newLlama, "mistral": newLlama, "qwen2": newLlama, "qwen3": newLlama,
}

func dtypeOf(d job.DType) eager.DType {
	switch d {
	case job.FP32:
		return eager.Float32
	case job.FP16:
		return eager.Float16
	}
	return eager.BFloat16
}

// layer runs a layer, or has it checkpointed. The checkpoint keeps all that
// the layer is called with.
func (r *run) layer(l layer, x *eager.Tensor, c *shared) *eager.Tensor {
	copied := *c
	fn := func(args []*eager.Tensor) *eager.Tensor { return l.forward(r, args[0], &copied) }
	switch r.job.Recompute.Mode {
	case "full":
		return r.m.Checkpoint(fn, x, c.rope.cos, c.rope.sin, c.mask, c.positions)
	case "selective":
		return r.m.CheckpointSelective(fn, x, c.rope.cos, c.rope.sin, c.mask, c.positions)
	}
	return l.forward(r, x, c)
}
