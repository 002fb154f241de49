package prognosis_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// deathOf loads a recording that ends in a failure.
func deathOf(t testing.TB, name string, steps bool) (*prognosis.Prognosis, *replay.Program) {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "testdata", "advice", name+".pickle.gz"), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := run.New(f.Traces[0], nil)
	p, err := r.Program(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.Analysis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := a.Steps
	if !steps {
		list = &findings.Steps{}
	}
	q := prognosis.Request{First: a.FirstForward()}
	for q.Cut = p.Len() - 1; p.Call(q.Cut).Kind != replay.CallTry; q.Cut-- {
	}
	q.Call = p.Call(q.Cut)
	q.Event = q.Call.Event
	q.Stack = f.Traces[0].Events.Stack.At(q.Event)
	return prognosis.New(p, list, q), p
}

// stateOf returns the stacks that leave most in the optimizer, so many of them.
func stateOf(x *prognosis.Prognosis, t *trace.Trace, n int) (stacks []trace.StackID) {
	for i := x.Failing(); i < x.Allocations(); i++ {
		stack := t.Events.Stack.At(x.Event(i))
		in := slices.ContainsFunc(timeline.Frames(t, stack), func(f timeline.Frame) bool { return strings.Contains(f.Filename, "torch/optim/") })
		if in && x.Live(i) && !slices.Contains(stacks, stack) {
			stacks = append(stacks, stack)
		}
	}
	slices.SortFunc(stacks, func(a, b trace.StackID) int { return int(x.Total(b)) - int(x.Total(a)) })
	return stacks[:n]
}

// What an optimizer has begun comes to its end, and the steps that follow neither leave anything behind nor ask for it again.
func TestContinuedFirst(t *testing.T) {
	for name, passes := range map[string][]bool{"shared/adam_first_step": {false, true}, "adam_wide_mlp": {true}} {
		x, p := deathOf(t, name, false)
		state := stateOf(x, p.Trace, 2)
		total := x.Total(state[0])
		if other := x.Total(state[1]); other != total {
			t.Fatalf("%s: %d and %d bytes of state", name, total, other)
		}
		for _, passing := range passes {
			c := x.ContinuedFirst(state, passing)
			if c == nil || c.Recorded != 1 || len(c.Begins) != 7 || !slices.IsSorted(c.Begins) {
				t.Fatalf("%s: %+v", name, c)
			}
			live, after, most := liveAt(c)
			ofState, before := uint64(0), uint64(0)
			for tensor, size := range live {
				like := c.Like(tensor)
				if like < 0 {
					t.Fatalf("%s: tensor %d is in no place", name, tensor)
				}
				if position := x.Position(like); position < x.Failing() {
					before += size
				} else if slices.Contains(state, p.Trace.Events.Stack.At(x.Event(position))) {
					ofState += size
				} else {
					t.Errorf("%s: %d bytes of event %d stay", name, size, x.Event(position))
				}
			}
			if ofState != 2*total || before < total {
				t.Errorf("%s: %d bytes of state, %d before the steps; %d of each", name, ofState, before, total)
			}
			if slices.Min(after) != slices.Max(after) || len(after) != 6 || slices.Min(most) != slices.Max(most) {
				t.Errorf("%s: %v bytes after steps, %v at most in them", name, after, most)
			}
			if passing && most[0] < after[0]+2*total { // gradients, and as much in passing
				t.Errorf("%s: %d bytes at most, %d after a step", name, most[0], after[0])
			}
		}
	}
}

// liveAt goes through a continued run: what lives at its end, what does so before each step but the recorded one, and the most in
// each of these but the last.
func liveAt(c *prognosis.Continued) (live map[int]uint64, before, most []uint64) {
	live = map[int]uint64{}
	bytes, peak := uint64(0), uint64(0)
	add := func(tensor int, call replay.Call) {
		live[tensor] = call.Size
		bytes += call.Size
		peak = max(peak, bytes)
	}
	c.Program.EachFirst(add)
	begins := c.Begins[c.Recorded:]
	for i := range c.Program.Len() {
		call := c.Program.Call(i)
		for len(begins) > 0 && call.Event >= begins[0] {
			if len(before) > 0 {
				most = append(most, peak)
			}
			before, begins, peak = append(before, bytes), begins[1:], bytes
		}
		switch call.Kind {
		case replay.CallAlloc:
			add(call.Tensor, call)
		case replay.CallFree, replay.CallFreeLater:
			bytes -= live[call.Tensor]
			delete(live, call.Tensor)
		}
	}
	return live, before, most
}

// A run whose earlier steps show how it goes on: what was added is in the place of what they made.
func TestContinued(t *testing.T) {
	x, p := deathOf(t, "blind/crowd_image", true)
	c := x.Continued()
	if c == nil || c.Recorded != 9 || len(c.Begins) < 12 || !slices.IsSorted(c.Begins) {
		t.Fatalf("%+v", c)
	}
	for i := range c.Program.Len() {
		call := c.Program.Call(i)
		if call.Kind != replay.CallAlloc || call.Event < p.Trace.Events.Len() {
			continue
		}
		if like := c.Like(call.Tensor); like < 0 || like >= p.Tensors() {
			t.Fatalf("tensor %d is in the place of %d", call.Tensor, like)
		}
	}
	if first, _ := deathOf(t, "shared/adam_first_step", false); first.Continued() != nil {
		t.Error("no earlier step, and yet it goes on")
	}
	if x.ContinuedFirst(nil, true) != nil {
		t.Error("this is no first step")
	}
}
