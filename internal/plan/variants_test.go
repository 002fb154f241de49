package plan

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Variants are kept until their runs have too many events, and a run that gets its
// figures counts once.
func TestVariantsKept(t *testing.T) {
	const events = maxKept / 4
	v := &variants{}
	for i := range 10 {
		o := Options{}
		if err := o.Set("batch", fmt.Sprint(i+1)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			p := &planned{run: &executed{}}
			p.run.ledger = &ledger.Ledger{Events: make([]int32, events)}
			v.keep(o, p)
		}
	}
	if len(v.known) != 4 || v.kept != maxKept {
		t.Errorf("%d kept, of %d events", len(v.known), v.kept)
	}
}
