package plan

import (
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// shard reads how the work is spread, and refuses what the model's shape does
// not allow.
func (r *request) shard() error {
	text := r.pick("shard", "none", "")
	if text == "none" {
		return r.build()
	}
	s := &r.job.Shard
	for part := range strings.SplitSeq(text, ",") {
		word, count, _ := numbered(part)
		n := int(count)
		switch word {
		case "ddp":
			s.DDP = n
		case "ddp-view":
			s.DDP, s.BucketView = n, true
		case "fsdp":
			s.FSDP, s.ReshardAfterForward = n, true
		case "fsdp-mixed":
			s.FSDP, s.ReshardAfterForward = n, true
			s.ParamDType, s.ReduceDType = model.BF16, model.FP32
		case "zero1", "zero2", "zero3":
			s.Zero, s.ZeroStage = n, int(word[4]-'0')
		case "tp":
			s.Tensor = n
		case "sp":
			s.Sequence = n
		case "pp":
			s.Pipeline = n
		case "cp":
			s.Context = n
		case "ep":
			s.Expert = n
		}
	}
	if r.job.Mode == model.Generate && (s.DDP > 0 || s.FSDP > 0 || s.Zero > 0 || s.Pipeline > 0 || s.Context > 0) {
		return problem.New("{shard} in {mode} generate: tp and ep are the ways to spread a served model; leave the others out")
	}
	if n := count(s.DDP > 0, s.FSDP > 0, s.Zero > 0); n > 1 {
		return problem.New("{shard}: ddp, fsdp and zero exclude each other; choose one")
	}
	if err := r.divisible(s); err != nil {
		return err
	}
	return r.build()
}

// build reads how the model comes onto the GPUs. Where ranks divide the weights
// each makes its own part by default: a model that is larger than a card could
// not be built in another way.
func (r *request) build() error {
	s := &r.job.Shard
	ranks := s.FSDP
	if s.ZeroStage == 3 {
		ranks = s.Zero
	}
	how := r.options.Get("build")
	r.defaults["build"] = buildWhole
	switch {
	case how == buildSharded && ranks == 0:
		return problem.New("{build} sharded is for ranks that divide the weights: give {shard} fsdp:N or zero3:N, or leave it out")
	case how == "" && ranks > 1:
		how = buildSharded
		r.assume("build", how, "each rank makes only its part of the weights (meta device, zero.Init), which was not measured")
	case how == "" && ranks == 1:
		r.assume("build", buildWhole, "one rank has all of the weights")
	}
	s.BuildSharded = how == buildSharded
	return nil
}

// stages is how many stages of a pipeline --shard asks for, 0 for none.
func (r *request) stages() int {
	for part := range strings.SplitSeq(r.options.Get("shard"), ",") {
		if word, n, _ := numbered(part); word == "pp" {
			return int(n)
		}
	}
	return 0
}

func count(all ...bool) int {
	n := 0
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

// divisible checks that what is divided among ranks can be.
func (r *request) divisible(s *model.Shard) error {
	m := r.model
	if t := s.Tensor; t > 1 {
		if why := undivided(m, t); why != "" {
			return problem.New("{shard} tp:%d: %s; %s", t, why, tensorRanks(m, t))
		}
	}
	if s.Sequence > 1 && s.Sequence != s.Tensor {
		return problem.New("{shard} sp:%d: sequence parallelism shares the ranks of tensor parallelism; write tp:%d,sp:%d", s.Sequence, s.Sequence, s.Sequence)
	}
	for _, c := range []struct {
		name string
		n    int
	}{{"cp", s.Context}, {"sp", s.Sequence}} {
		if c.n > 1 && r.job.Seq%int64(c.n) != 0 {
			return problem.New("{shard} %s:%d: %d tokens cannot be divided among %d ranks; give a {seq} that is a multiple of %d", c.name, c.n, r.job.Seq, c.n, c.n)
		}
		if c.n > 1 && r.job.TargetSeq%int64(c.n) != 0 {
			return problem.New("{shard} %s:%d: a target of %d tokens cannot be divided among %d ranks; give a {target-seq} that is a multiple of %d", c.name, c.n, r.job.TargetSeq, c.n, c.n)
		}
	}
	if s.Pipeline > 1 && m.Head != model.HeadCausal {
		return problem.New("{shard} pp:%d: pipelines are planned for models that predict the next token, not for %s; leave it out", s.Pipeline, m.ModelType)
	}
	if s.Pipeline > m.Layers {
		return problem.New("{shard} pp:%d: the model has only %d layers; give fewer stages", s.Pipeline, m.Layers)
	}
	if e := s.Expert; e > 0 {
		if m.MoE == nil {
			return problem.New("{shard} ep:%d: %s has no experts; leave it out", e, m.ModelType)
		}
		if m.MoE.Experts%e != 0 {
			return problem.New("{shard} ep:%d: %d experts cannot be divided among %d ranks; %s", e, m.MoE.Experts, e, divisors(m.MoE.Experts, e))
		}
	}
	return nil
}

// divisors names the numbers next to n that divide a total.
func divisors(total, n int) string {
	return nearest(total, n, func(d int) bool { return total%d == 0 })
}
