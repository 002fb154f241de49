package tune

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/run"
)

// elsewhere tries a batch in two parts on other copies of the run, to which it
// goes as JSON. Every second batch it fails.
func elsewhere(t *testing.T, copies [2]*run.Checked, batches *atomic.Int64) Evaluator {
	return func(ctx context.Context, b *Batch) ([]Trial, error) {
		if batches.Add(1)%2 == 0 {
			return nil, errors.New("the worker is gone")
		}
		var out []Trial
		half := len(b.Settings) / 2
		for i, part := range [2][2]int{{0, half}, {half, len(b.Settings)}} {
			mine := *b
			mine.Settings = b.Settings[part[0]:part[1]]
			text, err := json.Marshal(&mine)
			if err != nil {
				t.Fatal(err)
			}
			var sent Batch
			if err := json.Unmarshal(text, &sent); err != nil {
				t.Fatal(err)
			}
			trials, err := sent.Try(ctx, copies[i], 1)
			if err != nil {
				return nil, err
			}
			if text, err = json.Marshal(trials); err != nil {
				t.Fatal(err)
			}
			var back []Trial
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			out = append(out, back...)
		}
		return out, nil
	}
}

// Who tries the batches does not change the answer.
func TestEvaluate(t *testing.T) {
	const file, limit = "snapshots/streams_graphs-tight-default", 300 << 20
	of := checked(t, file)
	copies := [2]*run.Checked{checked(t, file), checked(t, file)}
	for _, goal := range Goals {
		for _, limit := range []uint64{0, limit} {
			o := Options{Goal: goal, Limit: limit, Work: 60_000} // few batches
			here := quick(t, of, o)
			var batches atomic.Int64
			o.Evaluate = elsewhere(t, copies, &batches)
			there := quick(t, of, o)
			answer := func(r *Result) string {
				r.Elapsed = 0
				text, err := json.MarshalIndent(NewAnswer(of, r, whatif.GivenLimit(of, limit), whatif.GivenMemory(0)), "", " ")
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			if diff := cmp.Diff(answer(here), answer(there)); diff != "" {
				t.Errorf("%s, limit %d: %s", goal, limit, diff)
			}
			if batches.Load() == 0 {
				t.Errorf("%s, limit %d: no batch went elsewhere", goal, limit)
			}
		}
	}
}
