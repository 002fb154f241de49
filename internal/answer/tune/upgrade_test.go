package tune

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// TestUpgrade: of what an old PyTorch does not know nothing is recommended or
// listed; what it would gain stands apart.
func TestUpgrade(t *testing.T) {
	c := checked(t, "snapshots/ckpt_spike-tight-default")
	const limit = 2608 << 20
	c.Trace.Writer = pytorch.Exactly(pytorch.Oldest)
	r := quick(t, c, Options{Limit: limit, Work: 1e6})
	of := answer.AllocatorOf(c.Trace)
	for _, x := range append([]*Candidate{r.Current, r.Recommended}, r.Others...) {
		if use, why := of.Takes(x.Settings); use != answer.Now {
			t.Errorf("%s is offered: %s", x.Settings, why)
		}
	}
	if r.AfterUpgrade == nil || !r.AfterUpgrade.Settings.ExpandableSegments {
		t.Fatalf("after an upgrade: %+v", r.AfterUpgrade)
	}
	a := NewAnswer(c, r, whatif.GivenLimit(c, limit), whatif.GivenMemory(0))
	up := a.AfterUpgrade
	if up == nil || !strings.Contains(up.Requires, "needs PyTorch 2.") || up.Value == nil || a.Recommended.Value != nil && *up.Value >= *a.Recommended.Value {
		t.Errorf("%+v", up)
	}
	if said := a.Achieves(up); !strings.HasPrefix(said, "passes with ") {
		t.Errorf("%s", said)
	}

	c.Trace.Writer = pytorch.Exactly(pytorch.Default)
	if r := quick(t, c, Options{Limit: limit, Work: 1e6}); r.AfterUpgrade != nil {
		t.Errorf("after an upgrade of %v: %s", pytorch.Default, r.AfterUpgrade.Settings)
	}
}

// TestFreshByUse: the space has what can be used now, or what needs an upgrade.
func TestFreshByUse(t *testing.T) {
	c := checked(t, "snapshots/ckpt_spike-tight-default")
	c.Trace.Writer = pytorch.Range{First: pytorch.Of(2, 5), Last: pytorch.Of(2, 7)}
	s := newSpace(c.Program, true)
	segment := withSegment(settings.Default(), 32)
	split := settings.Default()
	split.MaxSplitSize = 128 * mib
	for use, want := range map[answer.Use]settings.Settings{answer.Now: split, answer.Later: segment} {
		s.use, s.seen = use, map[settings.Settings]bool{}
		if got := s.fresh([]settings.Settings{segment, split}); len(got) != 1 || got[0] != want {
			t.Errorf("%v: %v", use, got)
		}
	}
}
