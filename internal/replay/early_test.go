package replay_test

import (
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// A tensor that was allocated last comes first: it has an address of its own
// then, and all else is as before.
func TestEarly(t *testing.T) {
	const mib = 1 << 20
	tr, err := scenario.Run(scenario.Config{}, func(s *scenario.Scenario) {
		s.Alloc("activation", 30*mib, 0, "a.py:1 f")
		s.Free("activation")
		s.Alloc("state", 12*mib, 0, "a.py:2 g")
		s.Alloc("input", 40*mib, 0, "a.py:3 h")
		s.Free("input")
	})
	if err != nil {
		t.Fatal(err)
	}
	p := programOf(t, tr)
	state, event := -1, -1
	for i := range p.Len() {
		if c := p.Call(i); c.Size == 12*mib {
			state, event = c.Tensor, c.Event
		}
	}
	e := p.Early(map[int]bool{state: true})
	if e.Len() != p.Len() || e.Call(0).Tensor != state || e.Call(0).Event != event || p.Call(0).Tensor == state {
		t.Fatalf("%d calls, the first %+v", e.Len(), e.Call(0))
	}
	c := replay.Conditions{Settings: p.Settings}
	for _, tt := range []struct {
		p       *replay.Program
		segment uint64 // the only one at the end, after a flush
	}{{p, 30 * mib}, {e, 12 * mib}, {e.Early(nil), 12 * mib}} {
		m, err := tt.p.Hold(t.Context(), c, tr.Events.Len())
		if err != nil {
			t.Fatal(err)
		}
		live := m.Live()
		if len(live) != 1 || live[0].Event != event || live[0].Stack != tr.Events.Stack.At(event) {
			t.Errorf("live %+v", live)
		}
		if err := m.EmptyCache(); err != nil {
			t.Fatal(err)
		}
		if got := m.Segments(); len(got) != 1 || got[0].TotalSize != tt.segment {
			t.Errorf("segments %+v, want one of %d bytes", got, tt.segment)
		}
	}
	// Held at the event of a tensor that is there already, the next call is the
	// one that the trace has next.
	m, err := e.Hold(t.Context(), c, event)
	if err != nil {
		t.Fatal(err)
	}
	if call, ok := m.Call(); !ok || call.Size != 40*mib || m.Totals() != (alloc.Totals{Reserved: 42 * mib, Allocated: 12 * mib, Active: 12 * mib, Requested: 12 * mib}) {
		t.Errorf("next %+v, %+v", call, m.Totals())
	}
}
