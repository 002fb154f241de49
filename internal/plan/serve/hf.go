package serve

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// HF answers the same question for transformers' generate(): how many prompts of
// the maximal length one call takes. There is no pool of blocks; the cache grows
// with the batch, and the prompt's forward pass is the peak.
func HF(ctx context.Context, q plan.Question, maxLen int64) (*Answer, error) {
	switch {
	case maxLen < 2:
		return nil, problem.New("{max-model-len} is missing: say how many tokens a request may have, for instance {max-model-len} 4096")
	case q.Capacity.Card == nil:
		return nil, problem.New("{serve} hf needs {gpu}: the batch is what fits on the card")
	}
	for _, o := range [][2]string{{"mode", "generate"}, {"generate", "1"}, {"seq", fmt.Sprint(maxLen - 1)}} {
		if err := q.Options.Set(o[0], o[1]); err != nil {
			return nil, err
		}
	}
	q.NoLevers, q.Points = true, 0
	most, _, err := plan.Settle(ctx, &q, "batch")
	if err != nil {
		return nil, err
	}
	p, err := plan.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	c := q.Capacity.Card
	fits := most.Value > 0
	a := &Answer{
		Engine: "hf", Version: p.Preset, Model: p.Model, Fits: &fits, Card: c.Name, TotalBytes: c.TotalBytes,
		UsableBytes: c.TotalBytes - min(c.TotalBytes, p.Context),
		MaxModelLen: maxLen, MaxSeqs: most.Value, TP: 1, Tokens: most.Value * maxLen, Concurrency: float64(most.Value),
		Measured: p.Measured, Assumed: p.Assumed, NotModelled: p.NotModelled, LeavesOut: p.LeavesOut,
	}
	for _, x := range p.Components {
		a.Parts = append(a.Parts, Part{Name: x.Name, Bytes: x.Bytes, Measured: p.Measured, Source: "the symbolic run of preset " + p.Preset})
		if x.Name == "cache" {
			a.Available = int64(x.Bytes)
			a.TokenBytes = int64(x.Bytes) / max(most.Value, 1) / (maxLen - 1)
			a.SequenceBytes = a.TokenBytes * maxLen
		}
	}
	return a, nil
}
