package recipe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// trainerCase is a run of tools/bench/plan/trainer.json.
type trainerCase struct {
	Name  string          `json:"case"`
	Model json.RawMessage `json:"model"`
	Seq   json.Number     `json:"seq"`
	Args  json.RawMessage `json:"args"`  // of --trainer; null for a loop of its own
	Flags []string        `json:"flags"` // of ashlar plan
}

// figures are the peaks of a run, planned or measured.
type figures struct {
	Name      string `json:"case"`
	Params    int64  `json:"params"`
	Allocated uint64 `json:"allocated"`
	Reserved  uint64 `json:"reserved"`
	Requested uint64 `json:"requested"`
}

func byName(t *testing.T, file string) map[string]figures {
	t.Helper()
	dir, err := plancompare.Folder()
	if err != nil {
		t.Fatal(err)
	}
	all, err := jsonl.Read[figures](filepath.Join(dir, file, "trainer.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]figures{}
	for _, f := range all {
		out[f.Name] = f
	}
	return out
}

// ask plans a case as `ashlar plan --trainer ARGS --gpu h200` does.
func (c *trainerCase) ask(t *testing.T) *plan.Answer {
	t.Helper()
	m, err := model.Read(bytes.NewReader(c.Model))
	if err != nil {
		t.Fatal(err)
	}
	var o plan.Options
	set := func(name, value string) {
		if err := o.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	set("seq", c.Seq.String())
	for i, f := range c.Flags {
		name, ok := strings.CutPrefix(f, "--")
		switch {
		case !ok:
		case i+1 < len(c.Flags) && !strings.HasPrefix(c.Flags[i+1], "--"):
			set(name, c.Flags[i+1])
		default:
			set(name, "true")
		}
	}
	if len(c.Args) > 0 && string(c.Args) != "null" {
		r := New(o.Has)
		if err := r.Trainer(write(t, c.Name+".json", string(c.Args))); err != nil {
			t.Fatal(err)
		}
		if o, err = r.Options(m, o); err != nil {
			t.Fatal(err)
		}
	}
	card, err := cards.Parse("h200")
	if err != nil {
		t.Fatal(err)
	}
	a, err := plan.Ask(t.Context(), plan.Question{Model: m, Options: o, NoLevers: true, Capacity: plan.Capacity{Card: &card}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// tableRow is the line that the page has for a run.
func tableRow(name string, measured, predicted figures) string {
	return fmt.Sprintf("| `%s` | %s | %+d B | %s | %+d B |", name, units.Size(measured.Allocated), int64(predicted.Allocated)-int64(measured.Allocated),
		units.Size(measured.Reserved), int64(predicted.Reserved)-int64(measured.Reserved))
}

func off(planned, measured uint64) float64 {
	return math.Abs(float64(planned)/float64(measured) - 1)
}

// Runs of Trainer and of PEFT's adapters: the plans that were committed before the
// runs were measured hold the bars, and today's are as good.
func TestTrainerMeasured(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "tools", "bench", "plan", "trainer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []trainerCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	measured, predicted := byName(t, "measured"), byName(t, "predicted")
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "measured", "plan.md"))
	if err != nil {
		t.Fatal(err)
	}
	var allocated, reserved []float64
	for _, c := range cases {
		m, p := measured[c.Name], predicted[c.Name]
		if m.Allocated == 0 || p.Allocated == 0 {
			t.Errorf("%s was not measured, or not planned before", c.Name)
			continue
		}
		allocated = append(allocated, off(p.Allocated, m.Allocated))
		reserved = append(reserved, off(p.Reserved, m.Reserved))
		if row := tableRow(c.Name, m, p); !bytes.Contains(page, []byte(row)) {
			t.Errorf("docs/measured/plan.md lacks this line:\n%s", row)
		}
		a := c.ask(t)
		if a.Parameters != m.Params {
			t.Errorf("%s: %d parameters, measured %d", c.Name, a.Parameters, m.Params)
		}
		// Some scalars are not planned: the scaler's of fp16, one of the script's.
		const scalars = 16
		if d := int64(a.PeakRequested) - int64(m.Requested); d > 0 || d < -scalars {
			t.Errorf("%s: %d requested, measured %d", c.Name, a.PeakRequested, m.Requested)
		}
		if off(a.PeakAllocated, m.Allocated) > 1e-5 || off(a.PeakReserved, m.Reserved) > 1e-3 {
			t.Errorf("%s: %d allocated, %d reserved; measured %d, %d", c.Name, a.PeakAllocated, a.PeakReserved, m.Allocated, m.Reserved)
		}
	}
	if len(allocated) < 31 {
		t.Errorf("only %d runs", len(allocated))
	}
	if a, r := slices.Max(allocated), slices.Max(reserved); a > 1e-4 || r > 1e-3 {
		t.Errorf("predictions were off by %.4f %% of allocated and %.4f %% of reserved memory", 100*a, 100*r)
	}
}
