package tenants

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// A server beside a batch job that wants more than there is.
func TestAsk(t *testing.T) {
	short.Skip(t)
	serve, batch := load(t, "snapshots/ckpt_spike-default"), load(t, "snapshots/leak_graph-default")
	gpu := &GPU{Title: "a GPU", Instances: []Instance{{"small", 1 << 30}, {"medium", 4 << 30}, {"large", 16 << 30}}, Fits: func(of []int) bool { return len(of) == 2 }}
	q := &Question{
		Limit: 2300 << 20, Clock: ByEvent, SkipOOM: true, Against: []string{Shared, Hard, MIG}, GPU: gpu,
		Runs: []*Run{
			{Name: "serve", File: "ckpt_spike", Checked: serve, Priority: 10},
			{Name: "batch", File: "leak_graph", Checked: batch},
		},
	}
	q.Runs[0].Guarantee = need(t, q.Runs[0])
	q.Limit = q.Runs[0].Guarantee + 500<<20
	a, err := Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range a.Arrangements {
		names = append(names, r.Name)
		if r.SmallestLimit == nil || *r.SmallestLimit < a.PeakLive || *r.IdleMean >= *r.SmallestLimit || len(r.Results) != 2 {
			t.Errorf("%+v", r)
		}
	}
	if got := strings.Join(names, " "); got != "tenants shared hard mig" {
		t.Error(got)
	}
	own, shared, hard, mig := a.Arrangements[0], a.Arrangements[1], a.Arrangements[2], a.Arrangements[3]
	if !own.Fails || own.Results[0].Failures != 0 || own.Results[1].Failures == 0 || own.Results[1].Guaranteed != 0 {
		t.Errorf("%+v, %+v", own.Results[0], own.Results[1])
	}
	if !shared.Fails || shared.Results[0].Guaranteed == 0 || shared.Results[0].PeakReserved != nil {
		t.Errorf("one engine protects the server: %+v", shared.Results[0])
	}
	if !hard.Fails || *hard.SmallestLimit <= *shared.SmallestLimit || *hard.Results[0].Share > *hard.SmallestLimit {
		t.Errorf("%+v, %+v", hard, hard.Results[0])
	}
	if mig.Fails || *mig.Results[0].Profile != "medium" || mig.Results[1].Failures != 0 {
		t.Errorf("%+v, %+v", mig, mig.Results[0])
	}
	gpu.Fits = func([]int) bool { return false }
	if a, err := Ask(t.Context(), q); err != nil || !a.Arrangements[3].Fails || a.Arrangements[3].SmallestLimit != nil {
		t.Errorf("instances that do not fit: %+v, %v", a.Arrangements[3], err)
	}
	gpu.Instances = gpu.Instances[:1]
	if a, err := Ask(t.Context(), q); err != nil || !a.Arrangements[3].Fails || len(a.Arrangements[3].Results) != 0 {
		t.Errorf("instances that are too small: %+v, %v", a.Arrangements[3], err)
	}
	raw, err := json.Marshal(a)
	if err != nil || !strings.Contains(string(raw), `"ceiling_bytes":null`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// What a hard split says to suffice does so for all passes of a run: the second pass
// of this one needs more than the first.
func TestHardRepeats(t *testing.T) {
	short.Skip(t)
	r := &Run{Name: "a", File: "llama_ckpt", Checked: load(t, "snapshots/llama_ckpt-default"), Repeat: 2}
	instances := []Instance{{"once", need(t, r)}, {"large", 16 << 30}}
	gpu := &GPU{Title: "a GPU", Instances: instances, Fits: func([]int) bool { return true }}
	q := &Question{Limit: 40 << 30, Clock: ByEvent, Against: []string{Hard, MIG}, GPU: gpu, Runs: []*Run{r}}
	a, err := Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	hard, mig := a.Arrangements[1], a.Arrangements[2]
	if hard.Fails || hard.Results[0].Failures != 0 || *hard.SmallestLimit <= instances[0].Bytes {
		t.Errorf("a hard split of %d: %+v", *hard.SmallestLimit, hard.Results[0])
	}
	if mig.Fails || *mig.Results[0].Profile != "large" {
		t.Errorf("%+v", mig.Results[0])
	}
	q.Limit = *hard.SmallestLimit
	if a, err := Ask(t.Context(), q); err != nil || a.Arrangements[1].Fails {
		t.Errorf("a hard split fails under its own smallest limit: %v", err)
	}
}

func TestCheck(t *testing.T) {
	run := func(name string, guarantee, ceiling uint64) *Run {
		return &Run{Name: name, Guarantee: guarantee, Ceiling: ceiling}
	}
	for _, tt := range []struct {
		q    Question
		want string
	}{
		{Question{Limit: 9}, "no tenant"},
		{Question{Runs: []*Run{run("a", 0, 0)}}, "no limit"},
		{Question{Limit: 9, Runs: []*Run{run("a", 5, 0), run("b", 5, 0)}}, "more than the limit"},
		{Question{Limit: 9, Runs: []*Run{run("a", 1<<63, 0), run("b", 1<<63, 0)}}, "no GPU has"},
		{Question{Limit: 9, Runs: []*Run{run("a", 0, 0), run("a", 0, 0)}}, "two tenants a"},
		{Question{Limit: 9, Runs: []*Run{run("a", 5, 4)}}, "below the guarantee"},
		{Question{Limit: 9, Runs: []*Run{run("a", 5, 0), run("b", 4, 9)}}, ""},
	} {
		err := tt.q.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, not %q", tt.q, err, tt.want)
		}
	}
}

// Runs begin when they are told to, end when their last pass does, and are weighed by the clock.
func TestClock(t *testing.T) {
	c := load(t, "variety/graphs")
	n := c.Program.Len()
	r := &Run{Checked: c, Start: 100, Repeat: 2}
	k := newClock(r, ByEvent, 4*n)
	if a, b := k.at(r, 0), k.at(r, 2*n); a != 100 || b != 100+4*float64(n) {
		t.Errorf("by event: from %v to %v", a, b)
	}
	k = newClock(r, ByTime, 0)
	times := &c.Trace.Events.Time
	length := float64(times.At(c.Program.Call(n-1).Event) - times.At(c.Program.Call(0).Event))
	if a, b, again := k.at(r, 0), k.at(r, n-1), k.at(r, n); a != 100 || b != 100+length || again <= b {
		t.Errorf("by time: from %v to %v, again at %v", a, b, again)
	}
}
