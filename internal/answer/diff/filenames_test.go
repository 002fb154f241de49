package diff

import (
	"testing"

	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/trace"
)

func TestFileNames(t *testing.T) {
	got := FileNames([]string{"a/x", "b/x", "b/y", "-"})
	for f, want := range map[string]string{"a/x": "a/x", "b/x": "b/x", "b/y": "y", "-": "stdin"} {
		if got[f] != want {
			t.Errorf("%s is called %q", f, got[f])
		}
	}
	got = FileNames([]string{"/runs/monday/rank0/x", "/runs/tuesday/rank0/x", "/runs/tuesday/rank1/x", "x", "/x", "/runs/y", "/runs/y"})
	for f, want := range map[string]string{
		"/runs/monday/rank0/x": "monday/rank0/x", "/runs/tuesday/rank0/x": "tuesday/rank0/x", "/runs/tuesday/rank1/x": "tuesday/rank1/x",
		"x": "x", "/x": "/x", "/runs/y": "y",
	} {
		if got[f] != want {
			t.Errorf("%s is called %q, want %q", f, got[f], want)
		}
	}
	tr := &trace.Trace{Device: 3}
	if one, many := RankName("y", tr, 1), RankName("y", tr, 2); one != "y" || many != "y:3" {
		t.Errorf("%q, %q", one, many)
	}
}

func TestCompareFirst(t *testing.T) {
	x := NewTable()
	sides := func(name string) []*Side {
		tr := open(t, name)
		out, err := x.Sides(t.Context(), Source{File: name, Run: run.New(tr, nil)}, Moments(tr))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	events, state := sides("variety/expand_tight"), sides("variety/stateonly")
	for _, test := range []struct {
		a, b []*Side
		want string
	}{{events, events, "peak"}, {events, state, "end"}, {state, events, "end"}} {
		if d := x.CompareFirst(test.a, test.b); d.A.At.Asked != test.want || d.B.At.Asked != test.want {
			t.Errorf("%s with %s: %s and %s", test.a[0].File, test.b[0].File, d.A.At.Asked, d.B.At.Asked)
		}
	}
}
