package managed

import (
	"testing"

	"pgregory.net/rapid"
)

func TestMoves(t *testing.T) {
	m := New(2*Page, 10*Page)
	step := func(what string, want uint64, f func()) {
		t.Helper()
		before := m.Moved()
		f()
		if got := (m.Moved() - before) / Page; got != want {
			t.Errorf("%s: %d pages moved, want %d", what, got, want)
		}
	}
	step("two pages fit", 0, func() { m.Begin(0, 2*Page) })
	step("a third sends the first away", 1, func() { m.Begin(2*Page, 100) })
	step("the first comes back for the second", 2, func() { m.Touch(10, 1, false) })
	step("the third is used again", 0, func() { m.Touch(2*Page, 1, true) })
	step("the first was not changed, and the second comes back", 1, func() { m.Touch(Page, 1, false) })
	step("a page without a block leaves for nothing", 1, func() {
		m.End(2*Page, 100)
		m.Touch(0, 1, false)
	})
	step("and comes back as nothing", 0, func() {
		m.End(0, 2*Page)
		m.Begin(2*Page, 1)
	})
}

// With all the room that is needed nothing moves, and a smaller device never moves
// less where blocks are touched in turn.
func TestEnoughRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "blocks")
		m := New(uint64(n)*Page, uint64(n)*Page)
		small := New(uint64(max(n/2, 1))*Page, uint64(n)*Page)
		for i := range uint64(n) {
			m.Begin(i*Page, Page)
			small.Begin(i*Page, Page)
		}
		for range rapid.IntRange(0, 60).Draw(t, "touches") {
			i := rapid.Uint64Range(0, uint64(n)-1).Draw(t, "block")
			m.Touch(i*Page, Page, true)
			small.Touch(i*Page, Page, true)
		}
		if m.Moved() != 0 || m.resident != n || small.resident > small.capacity || n > 1 && small.Moved() == 0 {
			t.Fatalf("moved %d and %d with %d and %d resident", m.Moved(), small.Moved(), m.resident, small.resident)
		}
	})
}
