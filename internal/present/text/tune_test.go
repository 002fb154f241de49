package text

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
)

// A recommendation that fails under the limit, and passes under a lower one, says
// so.
func TestTuneNotMonotone(t *testing.T) {
	text := func(smallest uint64) string {
		t.Helper()
		limit, event := uint64(17)<<30, 8
		under := &whatif.Result{Limit: &limit, Fails: true, First: &whatif.Failure{}}
		under.First.Event = &event
		c := &tune.Choice{SmallestLimit: &smallest, Need: &smallest, UnderLimit: under, Recorded: true}
		var b strings.Builder
		if err := Tune(&b, WhatIfHead{}, &tune.Answer{Current: c, Recommended: c, Limit: whatif.Limit{Bound: whatif.Bound{Bytes: &limit, Source: whatif.Given}}}, Style{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := text(16 << 30); !strings.Contains(got, "They pass under 16.00 GiB: a lower limit") {
		t.Error(got)
	}
	if got := text(18 << 30); strings.Contains(got, "They pass") {
		t.Error(got)
	}
}
