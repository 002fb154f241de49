package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// Two steps and the second once more are three steps.
func TestRepeatIsTheThirdStep(t *testing.T) {
	short.Skip(t)
	names, err := plancompare.Names()
	if err != nil {
		t.Fatal(err)
	}
	compared, not := 0, 0
	for _, name := range names {
		c, err := plancompare.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		j, err := c.Job()
		if err != nil || j.Mode != model.Train {
			continue
		}
		three, err := hf.Run(t.Context(), j)
		if err != nil {
			continue // a family that the preset does not have yet
		}
		j.Steps = 2
		two, err := hf.Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if !two.Ledger.Repeat() {
			t.Logf("%s does not repeat", name)
			not++
			continue
		}
		compared++
		if diff := differ(three.Ledger, two.Ledger); diff != "" && repeats(j) {
			t.Errorf("%s: %s", name, diff)
		} else if diff != "" {
			t.Logf("%s: %s", name, diff)
		}
	}
	if compared < 20 {
		t.Errorf("only %d compared, %d do not repeat", compared, not)
	}
}

// differ says how two ledgers differ.
func differ(a, b *ledger.Ledger) string {
	switch {
	case !slices.Equal(a.Events, b.Events):
		i := 0
		for i < min(len(a.Events), len(b.Events)) && a.Events[i] == b.Events[i] {
			i++
		}
		return strings.Join([]string{"events differ in", a.PhaseAt(i).Name}, " ")
	case !slices.Equal(a.Phases, b.Phases):
		return "phases differ"
	}
	for i := range a.Tensors {
		x, y := a.Tensors[i], b.Tensors[i]
		if a.Text(x.Op) != b.Text(y.Op) || a.Text(x.Module) != b.Text(y.Module) {
			return "names differ"
		}
		x.Op, x.Module, y.Op, y.Module = 0, 0, 0, 0
		if x != y {
			return "tensors differ"
		}
	}
	return ""
}
