package plan

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/settings"
)

// A plan held against itself: everything matches.
func TestCompareSame(t *testing.T) {
	q := question(t, "batch", "2", "seq", "600")
	c, err := Compare(t.Context(), q, run.New(written(t, q), nil), 50)
	if err != nil {
		t.Fatal(err)
	}
	if c.Covered != 1 || c.Missing != 0 || c.Extra != 0 || c.From != "build" || c.To != "optimizer 3" || len(c.Notes) > 0 {
		t.Errorf("%+v", c)
	}
	for _, p := range c.Peaks {
		if p.Measured == nil || *p.Measured != p.Planned {
			t.Errorf("%+v", p)
		}
	}
	if len(c.Curve.Planned) != 50 || slices.Max(c.Curve.Planned) != slices.Max(c.Curve.Measured) {
		t.Errorf("%+v", c.Curve)
	}
	for _, x := range c.Terms {
		if x.Change != "matched" {
			t.Errorf("%+v", x)
		}
	}
}

// A plan that lacks something and has something too much.
func TestCompareOther(t *testing.T) {
	q := question(t, "batch", "2", "seq", "600")
	recorded := written(t, q)
	q.execute = func(ctx context.Context, j *model.Job) (*executed, error) {
		e, err := byHand(ctx, j)
		l := ledger.New()
		ids := map[int32]int32{}
		from := e.ledger.Scored()
		next := 0
		for i, ev := range e.ledger.Events {
			for ; next < len(e.ledger.Phases) && e.ledger.Phases[next].First == i; next++ {
				p := e.ledger.Phases[next]
				l.Begin(p.Name, p.Step)
				if i == from {
					l.Free(l.Alloc(ledger.Tensor{Bytes: 7 << 20, Op: l.Name("surplus"), Module: l.Name("model.layers.3.mlp")}))
				}
			}
			if ev < 0 {
				if id, ok := ids[^ev]; ok {
					l.Free(id)
				}
				continue
			}
			t := e.ledger.Tensors[ev]
			if e.ledger.Text(t.Op) == "log_softmax" && i > from {
				continue // left out
			}
			ids[ev] = l.Alloc(ledger.Tensor{Bytes: t.Bytes, Kind: t.Kind, Op: l.Name(e.ledger.Text(t.Op)), Module: l.Name(e.ledger.Text(t.Module))})
		}
		e.ledger = l
		return e, err
	}
	c, err := Compare(t.Context(), q, run.New(recorded, nil), 50)
	if err != nil {
		t.Fatal(err)
	}
	logits := uint64(2 * 600 * 32000 * 2)
	if c.Missing != logits || c.Extra != 7<<20 || c.Covered >= 1 || c.Covered < 0.9 {
		t.Errorf("%+v", c)
	}
	if x := c.Terms[0]; x.Change != "missing" || x.Bytes != logits || x.Count != 1 || !strings.Contains(x.Where, "log_softmax") {
		t.Errorf("%+v", x)
	}
	if x := c.Terms[1]; x.Change != "extra" || x.What != "surplus" || x.Where != "model.layers.*.mlp" {
		t.Errorf("%+v", x)
	}
}

// A recording of something else is refused.
func TestCompareRefuses(t *testing.T) {
	q := question(t, "batch", "2", "seq", "600")
	other := written(t, q)
	q.execute = func(context.Context, *model.Job) (*executed, error) {
		l := ledger.New()
		l.Begin(ledger.Build, 0)
		l.Alloc(ledger.Tensor{Bytes: 12345678})
		return &executed{ledger: l}, nil
	}
	if _, err := Compare(t.Context(), q, run.New(other, nil), 50); err == nil || !strings.Contains(err.Error(), "another model") {
		t.Error(err)
	}
}

// A plan against what was recorded of the real run.
func TestCompareRecorded(t *testing.T) {
	for _, name := range []string{"llama_full", "mixtral", "llama_gen"} {
		r, err := plancompare.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		j, err := r.Job()
		if err != nil {
			t.Fatal(err)
		}
		tr, err := traceOf(t.Context(), r.Ledger, replay.Conditions{Settings: settings.Default()}, "", string(j.Optimizer), nil)
		if err != nil {
			t.Fatal(err)
		}
		q := Question{Model: j.Model, Settings: settings.Default(), execute: func(ctx context.Context, _ *model.Job) (*executed, error) { return preset517(ctx, j) }}
		q.Options = options(t, "batch", "1", "seq", "1") // the job is the recorded one
		c, err := Compare(t.Context(), q, run.New(tr, nil), 60)
		if err != nil {
			t.Fatal(err)
		}
		if c.Covered < 0.99 {
			t.Errorf("%s: %.4f of the bytes are covered", name, c.Covered)
		}
		for _, p := range c.Peaks {
			if off := float64(p.Planned)/float64(*p.Measured) - 1; off > 0.01 || off < -0.01 {
				t.Errorf("%s: %s planned %d, measured %d", name, p.Name, p.Planned, *p.Measured)
			}
		}
	}
}
