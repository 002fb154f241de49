package ledger

import (
	"slices"
	"testing"
)

// steps is a ledger of a few steps. Each holds a tensor that the next one frees.
func steps(n int) *Ledger {
	l := New()
	l.Begin(Build, 0)
	l.Alloc(Tensor{Bytes: 100, Kind: Weight, Op: l.Name("parameter")})
	held := int32(-1)
	for step := 1; step <= n; step++ {
		l.Begin(Forward, step)
		saved := l.Alloc(Tensor{Bytes: 50, Op: l.Name("mm")})
		gone := l.Alloc(Tensor{Bytes: 7, Op: l.Name("add")})
		l.Free(gone)
		out := l.Alloc(Tensor{Bytes: 9, Op: l.Name("out")})
		if held >= 0 {
			l.Free(held)
		}
		held = out
		l.Begin(Backward, step)
		l.Free(saved)
		l.Begin(Step, step)
		if step == 1 {
			l.Alloc(Tensor{Bytes: 200, Kind: Optimizer, Op: l.Name("zeros")})
		}
	}
	return l
}

func TestScored(t *testing.T) {
	l := steps(3)
	at := l.Scored()
	if p := l.PhaseAt(at); p.Name != Forward || p.Step != 3 || p.First != at {
		t.Errorf("event %d, phase %+v", at, p)
	}
	if p := l.PhaseAt(at - 1); p.Name != Backward || p.Step != 2 {
		t.Errorf("before it %+v", p) // the optimizer of step 2 has no events
	}
	g := New()
	g.Begin(Build, 0)
	g.Alloc(Tensor{Bytes: 1})
	g.Begin(Prefill, 1)
	g.Alloc(Tensor{Bytes: 1})
	g.Begin(Decode, 2)
	g.Alloc(Tensor{Bytes: 1})
	if got := g.Scored(); got != 1 {
		t.Errorf("a generation is scored from event %d", got)
	}
	if got := New().Scored(); got != 0 {
		t.Errorf("an empty ledger from %d", got)
	}
	if p := New().PhaseAt(5); p.Name != "" {
		t.Errorf("%+v", p)
	}
}

func TestPurposes(t *testing.T) {
	l := steps(2)
	var got []string
	for i, k := range l.Purposes() {
		got = append(got, l.Text(l.Tensors[i].Op)+" "+k.String())
	}
	want := []string{
		"parameter parameters", "mm activations", "add temporaries", "out activations", "zeros optimizer state",
		"mm activations", "add temporaries", "out activations",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRepeat(t *testing.T) {
	got, want := steps(2), steps(3)
	if !got.Repeat() {
		t.Fatal("it does not repeat")
	}
	if !slices.Equal(got.Events, want.Events) || !slices.Equal(got.Tensors, want.Tensors) || !slices.Equal(got.Phases, want.Phases) {
		t.Errorf("%+v\n%+v", got, want)
	}
	// The first step makes what the others only use.
	if l := steps(1); l.Repeat() || len(l.Events) != len(steps(1).Events) {
		t.Error("a first step is repeated")
	}
	if New().Repeat() {
		t.Error("nothing is repeated")
	}
}

func TestLive(t *testing.T) {
	l := New()
	a := l.Alloc(Tensor{Bytes: 1})
	b := l.Alloc(Tensor{Bytes: 1})
	l.Free(a)
	for event, want := range [][2]bool{{true, false}, {true, true}, {false, true}} {
		if l.Tensors[a].Live(event) != want[0] || l.Tensors[b].Live(event) != want[1] {
			t.Errorf("after event %d", event)
		}
	}
}
