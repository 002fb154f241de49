package plan

import (
	"sync/atomic"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/cards"
)

// TestCompareCards: a comparison says of each card what a plan for it alone says,
// and runs the model once for cards that are alike.
func TestCompareCards(t *testing.T) {
	var on []cards.Card
	for _, name := range []string{"h100", "h100-pcie", "h200", "a100", "l40s", "24GB", "t4", "8GiB", "mi300x"} {
		c, err := cards.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		on = append(on, c)
	}
	var planned atomic.Int64
	q := Question{Model: toyModel(t), Options: options(t, "batch", "24", "seq", "2048"), NoLevers: true}
	q.Progress = func() { planned.Add(1) }
	got, err := CompareCards(t.Context(), q, on)
	if err != nil {
		t.Fatal(err)
	}
	// 9.0 (with a card of 8 GiB), 8.0, 8.9, 7.5 and AMD's workspaces.
	if n := planned.Load(); n != 5 {
		t.Errorf("%d jobs were planned", n)
	}
	fits := 0
	for i := range on {
		q := q
		q.Capacity.Card = &on[i]
		want, err := Ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		c := got[i]
		if c.Fits {
			fits++
		}
		if c.Name != on[i].Name || c.Fits != *want.Fits || c.PeakReserved != want.PeakReserved || c.PeakAllocated != want.PeakAllocated || c.SmallestLimit != want.SmallestLimit ||
			c.Headroom != *want.Headroom || c.Available != *want.Available || (c.Limited == nil) != (want.Limited == nil) || c.Limited != nil && *c.Limited != *want.Limited {
			t.Errorf("%s: %+v, want %+v", on[i].Name, c, want)
		}
	}
	if fits == 0 || fits == len(on) {
		t.Errorf("%d of %d fit: the job tells nothing apart", fits, len(on))
	}
	if _, err := CompareCards(t.Context(), Question{Model: toyModel(t)}, on); err == nil {
		t.Error("a run without a batch is planned")
	}
}
