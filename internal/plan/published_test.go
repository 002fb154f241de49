package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/checkpoint"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
)

// published is a checkpoint that somebody published: its config, and the size of
// its tensors as its index has it.
type published struct {
	Source string          `json:"source"`
	Total  int64           `json:"total_size"`
	Config json.RawMessage `json:"config"`
	Host   int64           `json:"on_host"` // bytes that are loaded but not onto the GPU
	Vision int64           `json:"vision"`  // of the tower, where only the text model is planned
}

// The weights of a plan take as many bytes as published checkpoints have, and
// those of a rough plan lie around them.
func TestPublished(t *testing.T) {
	exact, rough := 0, 0
	for _, row := range jsonl.Must[published](t, "../../testdata/plan/published.jsonl") {
		m, err := model.Read(bytes.NewReader(row.Config))
		var unknown *model.UnknownError
		switch {
		case errors.As(err, &unknown):
			rough++
			roughlyPublished(t, &row, unknown)
			continue
		case err != nil:
			t.Errorf("%s: %v", row.Source, err)
			continue
		}
		exact++
		j, _, err := options(t, "batch", "1", "seq", "8", "mode", "generate").Job(m)
		if err != nil {
			t.Errorf("%s: %v", row.Source, err)
			continue
		}
		run, err := preset517(t.Context(), j)
		if err != nil {
			t.Errorf("%s: %v", row.Source, err)
			continue
		}
		var got int64
		for _, p := range run.weights {
			switch {
			case p.Tied:
			case p.Packed != nil:
				for _, x := range p.Packed {
					got += x.Bytes()
				}
			default:
				got += p.Tensor.Bytes()
			}
		}
		if want := row.Total - row.Host; got != want && got != want-row.Vision {
			t.Errorf("%s: %d bytes, the files have %d", row.Source, got, want)
		}
	}
	if exact < 9 || exact+rough < 16 {
		t.Errorf("%d exact, %d rough", exact, rough)
	}
}

// roughlyPublished checks the rough plan of a checkpoint: with its index it has
// the same bytes, and the guess from its config holds them.
func roughlyPublished(t *testing.T, row *published, e *model.UnknownError) {
	t.Helper()
	c := checkpoint.New(e)
	c.Parts[0].Bytes = uint64(row.Total)
	q := Question{Checkpoint: c, Options: options(t, "mode", "generate")}
	a, err := AskRough(t.Context(), q)
	if err != nil {
		t.Errorf("%s: %v", row.Source, err)
		return
	}
	if got := a.Parts[0].Bytes; got != uint64(row.Total) {
		t.Errorf("%s: %d bytes, the index has %d", row.Source, got, row.Total)
	}
	if e.Config["quantization_config"] != nil {
		return // the config does not have the size of what is packed
	}
	q.Checkpoint = checkpoint.New(e)
	if a, err = AskRough(t.Context(), q); err != nil {
		t.Errorf("%s: %v", row.Source, err)
		return
	}
	size := int64(4)
	if model.DTypeOf(e.Config) != "float32" {
		size = 2
	}
	if n := row.Total / size; a.ParametersLow > n || a.Parameters+a.Parameters/1000 < n {
		t.Errorf("%s: %d to %d parameters, the files have %d", row.Source, a.ParametersLow, a.Parameters, n)
	}
}
