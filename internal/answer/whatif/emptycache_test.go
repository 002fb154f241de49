package whatif

import (
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/findings"
)

func emptyCache(t *testing.T, text string) EmptyCache {
	t.Helper()
	c, err := ParseEmptyCache(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseEmptyCache(t *testing.T) {
	for _, text := range []string{"none", "step:0", "step:12", "every:1"} {
		if c := emptyCache(t, text); c.When != text {
			t.Errorf("%q is read as %+v", text, c)
		}
	}
	for _, text := range []string{"", "none:", "none:1", "step", "step:", "step:-1", "step:x", "every:0", "every:1.5", "all"} {
		if c, err := ParseEmptyCache(text); err == nil || !strings.Contains(err.Error(), "write none") {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

// Steps go by the numbers that the file gives them.
func TestEmptyCacheEvents(t *testing.T) {
	var steps []findings.Step
	for i := range 6 {
		steps = append(steps, findings.Step{Number: 3 + i, Begin: 100 * i})
	}
	for _, tt := range []struct {
		text string
		want []int
	}{
		{"step:3", []int{0}},
		{"step:8", []int{500}},
		{"every:1", []int{0, 100, 200, 300, 400, 500}},
		{"every:4", []int{100, 500}},
		{"step:9", nil},
		{"every:9", nil},
	} {
		got, err := emptyCache(t, tt.text).events(steps)
		if !slices.Equal(got, tt.want) || (err != nil) != (tt.want == nil) {
			t.Errorf("%s: %v, %v; want %v", tt.text, got, err, tt.want)
		}
	}
	if _, err := emptyCache(t, "step:9").events(steps); err == nil || !strings.Contains(err.Error(), "steps 3 to 8") {
		t.Errorf("step 9 of 3 to 8: %v", err)
	}
	if _, err := emptyCache(t, "step:1").events(nil); err == nil || !strings.Contains(err.Error(), "no steps") {
		t.Errorf("without steps: %v", err)
	}
}

// The run as it was comes first; all other results have the calls changed.
func TestAskEmptyCache(t *testing.T) {
	p := program(t, "variety/graphs.pickle.gz")
	q := question(p, setting(t, "expandable_segments:True"))
	q.EmptyCache = emptyCache(t, "none")
	a := ask(t, p, q)
	if c := a.EmptyCache; c == nil || *c != (EmptyCacheCalls{"none", 3, 0}) || len(a.Results) != 3 {
		t.Fatalf("%+v, %d results", c, len(a.Results))
	}
	own, without, other := a.Results[0], a.Results[1], a.Results[2]
	if !own.Recorded || own.EmptyCache != nil || own.PeakReserved != p.Peaks.Reserved.Value {
		t.Errorf("as recorded: %+v", own)
	}
	if without.Recorded || *without.EmptyCache != "none" || without.Settings != own.Settings || without.PeakReserved <= own.PeakReserved {
		t.Errorf("left out: %+v", without)
	}
	if other.Settings != "expandable_segments:True" || *other.EmptyCache != "none" {
		t.Errorf("left out, with other settings: %+v", other)
	}
	plain := ask(t, p, question(p, setting(t, "expandable_segments:True")))
	if plain.EmptyCache != nil || plain.Results[1].EmptyCache != nil || plain.Results[0].PeakReserved != own.PeakReserved {
		t.Errorf("not asked for: %+v", plain.Results[1])
	}

	q.EmptyCache = emptyCache(t, "step:3")
	steps := program(t, "snapshots/gpt2_varlen-default.pickle.gz")
	q.Settings, q.Limit, q.Memory = nil, LimitOf(steps), MemoryOf(steps)
	b := ask(t, steps, q)
	if c := b.EmptyCache; c.Made != 1 || b.Results[1].DeviceFrees <= b.Results[0].DeviceFrees || b.Results[1].PeakRequested != b.Results[0].PeakRequested {
		t.Errorf("before step 3: %+v, %+v", c, b.Results[1])
	}
}
