package playground

import (
	"strings"
	"testing"
)

// The answers that the documentation gives are those of the engine.
func TestExercises(t *testing.T) {
	for name, right := range map[string][]string{
		"hundred-blocks": {"400 MiB", "200MiB", "0", "yes", "no"},
		"two-models":     {"20.25 GiB", "10.25GiB", "10.25 GiB", "Yes"},
		"three-am":       {"18GiB", "0 B", "no", "yes"},
	} {
		verdicts, err := Grade(t.Context(), name, right)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range verdicts {
			if !v.Right || len(v.Why) == 0 {
				t.Errorf("%s, question %d: %q is not right: %+v", name, i+1, right[i], v)
			}
		}
		wrong := make([]string, len(right))
		for i := range wrong {
			wrong[i] = []string{"", "7TiB", "perhaps"}[i%3]
		}
		verdicts, err = Grade(t.Context(), name, wrong)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range verdicts {
			if v.Right {
				t.Errorf("%s, question %d: %q is right", name, i+1, wrong[i])
			}
		}
	}
	if _, err := Grade(t.Context(), "three-am", []string{"1"}); err == nil || !strings.Contains(err.Error(), "4 questions") {
		t.Error(err)
	}
	if _, err := Grade(t.Context(), "none", nil); err == nil {
		t.Error("an exercise that is not there")
	}
	if e := Exercises(); len(e) != 3 {
		t.Errorf("%d exercises", len(e))
	}
	am := play(t, threeAM().Questions[0].lines, End).Moment
	if am.ReservedBytes != 41<<30 || am.AllocatedBytes != 23<<30 {
		t.Errorf("3 AM: %d reserved, %d allocated", am.ReservedBytes, am.AllocatedBytes)
	}
}

// A size may be off by the rounding of people, a number may not.
func TestAccepts(t *testing.T) {
	size, count := Question{Unit: UnitBytes}, Question{Unit: UnitCount}
	for _, tt := range []struct {
		q      Question
		answer string
		want   uint64
		right  bool
	}{
		{size, "400 MiB", 400 << 20, true},
		{size, "0.39 GiB", 400 << 20, true},
		{size, "380 MiB", 400 << 20, false},
		{size, "0", 0, true},
		{size, "1", 0, false},
		{size, "x", 0, false},
		{count, " 12 ", 12, true},
		{count, "13", 12, false},
		{count, "12.0", 12, false},
	} {
		if got := tt.q.accepts(tt.answer, tt.want); got != tt.right {
			t.Errorf("%q for %d: %v", tt.answer, tt.want, got)
		}
	}
}
