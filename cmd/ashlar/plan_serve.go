package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/serve"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/spelling"
)

// serveOptions are the flags of plan --serve, in vLLM's words.
type serveOptions struct {
	engine      string
	maxLen      int64
	utilization float64
	tp          int64
	kvType      string
	seqs        int64
	batched     int64
	blockSize   int64
	eager       bool
	version     string
}

// serveFlags are the names of the flags that need --serve; but for the first they
// are vLLM's.
var serveFlags = []string{
	"max-model-len", "gpu-memory-utilization", "tp", "kv-dtype", "max-num-seqs", "max-num-batched-tokens", "block-size", "enforce-eager", "vllm",
}

func (o *serveOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.engine, "serve", "", "plan a server in place of a run, `ENGINE`: vllm, or hf for transformers' generate()")
	flags.Int64Var(&o.maxLen, "max-model-len", 0, "the most tokens of a request, `N`")
	flags.Float64Var(&o.utilization, "gpu-memory-utilization", 0, "vLLM: the `PART` of the card that it may use; by default the version's, 0.9 or 0.92")
	flags.Int64Var(&o.tp, "tp", 0, "vLLM: tensor parallel `RANKS`")
	flags.StringVar(&o.kvType, "kv-dtype", "", "vLLM: the `TYPE` of the cache, auto or fp8")
	flags.Int64Var(&o.seqs, "max-num-seqs", 0, "vLLM: the most requests of a step, `N`")
	flags.Int64Var(&o.batched, "max-num-batched-tokens", 0, "vLLM: the most tokens of a step, `N`")
	flags.Int64Var(&o.blockSize, "block-size", 0, "vLLM: the tokens of a block, `N`; by default 16")
	flags.BoolVar(&o.eager, "enforce-eager", false, "vLLM: no compilation and no CUDA graphs")
	flags.StringVar(&o.version, "vllm", "", "vLLM: its `VERSION`; by default "+serve.Newest.String())
}

// check refuses flags of a server without one, and values that none takes.
func (o *serveOptions) check(given func(flag string) bool) error {
	if o.engine == "" {
		for _, f := range serveFlags {
			if given(f) {
				return fmt.Errorf("--%s is for a server: give --serve vllm too", f)
			}
		}
		return nil
	}
	engines := []string{"vllm", "hf"}
	switch {
	case o.engine != "vllm" && o.engine != "hf":
		return errors.New("--serve " + o.engine + ": write vllm or hf" + spelling.DidYouMean(o.engine, engines))
	case o.maxLen <= 0:
		return errors.New("--max-model-len is missing: say how many tokens a request may have, for instance --max-model-len 32768")
	case o.kvType != "" && o.kvType != "auto" && !strings.HasPrefix(o.kvType, "fp8"):
		return fmt.Errorf("--kv-dtype %s: write auto or fp8", o.kvType)
	case given("gpu-memory-utilization") && (o.utilization <= 0 || o.utilization > 1):
		return fmt.Errorf("--gpu-memory-utilization %g: give a part of the card, above 0 and at most 1", o.utilization)
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"tp", o.tp}, {"max-num-seqs", o.seqs}, {"max-num-batched-tokens", o.batched}, {"block-size", o.blockSize}} {
		if given(f.name) && f.value <= 0 {
			return fmt.Errorf("--%s %d: it must be at least 1", f.name, f.value)
		}
	}
	for _, f := range o.useless() {
		if given(f) {
			return fmt.Errorf("--%s does nothing with --serve %s: leave it out", f, o.engine)
		}
	}
	return nil
}

// useless are the flags that the engine has no use for: those of a run, and with
// hf those of vLLM.
func (o *serveOptions) useless() []string {
	out := []string{"compare", "max", "sweep", "against", "trace", "trainer", "accelerate", "deepspeed"}
	for _, c := range plan.Catalogue() {
		switch c.Name {
		case "dtype", "quant":
			continue
		case "batch", "seq", "generate", "mode":
		default:
			if o.engine == "hf" && c.Mode() != model.Train {
				continue
			}
		}
		out = append(out, c.Name)
	}
	if o.engine == "vllm" {
		return append(out, "limit", "settings")
	}
	return append(out, serveFlags[1:]...)
}

// serveModel plans a server.
func (o *planOptions) serveModel(ctx context.Context, std stdio, file string) error {
	q, _, file, err := o.question(ctx, std, file)
	if err != nil {
		return err
	}
	if q.Checkpoint != nil {
		return failure{fmt.Errorf("%s has no family here, and a server's KV cache needs one: start the server, and read its own lines about KV cache memory; ashlar plan without --serve says what the weights take", q.Checkpoint.Class)}
	}
	a, err := o.server.plan(ctx, q)
	if err != nil {
		return failed(ctx, err)
	}
	if a.Engine == "vllm" { // the other is planned as a run, whose answer has them
		a.Assumed = append(append(q.Capacity.Assumed(), q.Assumed...), a.Assumed...)
		a.NotModelled = append(q.NotModelled, a.NotModelled...)
	}
	doc := &serveDocument{File: input.Name(file), Answer: a}
	err = printAnswer(std, o.json, doc, func(w io.Writer) error { return text.Serve(w, doc.File, a, std.style()) })
	if err == nil && a.Fits != nil && !*a.Fits {
		return status(exitBad)
	}
	return err
}

// serveDocument is what --serve --json prints.
type serveDocument struct {
	File string `json:"file"`
	*serve.Answer
}

func (o *serveOptions) plan(ctx context.Context, q plan.Question) (*serve.Answer, error) {
	if o.engine == "hf" {
		return serve.HF(ctx, q, o.maxLen)
	}
	r := serve.Request{
		Model: quantised(q.Model, q.Options.Get("quant")), MaxModelLen: o.maxLen, Utilization: o.utilization, TP: o.tp, MaxSeqs: o.seqs, BatchedTokens: o.batched,
		BlockSize: o.blockSize, Eager: o.eager, DType: model.DType(q.Options.Get("dtype")), WeightBytes: q.Weights.Bytes(),
	}
	if strings.HasPrefix(o.kvType, "fp8") {
		r.KVType = "fp8"
	}
	if q.Capacity.Card != nil {
		r.Card = *q.Capacity.Card
	}
	if o.version != "" {
		v, err := serve.ParseVersion(o.version)
		if err != nil {
			return nil, fmt.Errorf("--vllm: %w", err)
		}
		r.Version = v
	}
	return serve.Plan(ctx, r)
}

// quantised is the model with the weights that --quant names; none are those of a
// config without a quantization_config.
func quantised(m *model.Model, name string) *model.Model {
	if name == "" {
		return m
	}
	c := *m
	c.Quant, c.Quantised = nil, ""
	if name != "none" {
		c.Quant, c.Quantised = model.NewQuant(name), name
	}
	return &c
}
