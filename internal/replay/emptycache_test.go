package replay_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// With the calls that a program has anyway, nothing changes; without them its
// cache stays.
func TestEmptyCacheLeftOut(t *testing.T) {
	p := checked(t, "variety/graphs")
	recorded := p.EmptyCaches()
	if !slices.Equal(recorded, []int{22, 54, 79}) {
		t.Fatalf("empty_cache at %v", recorded)
	}
	c := replay.Conditions{Settings: p.Settings}
	outcome := func(p *replay.Program) *replay.Outcome {
		t.Helper()
		o, err := p.RunChecked(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	own := outcome(p)
	if d := cmp.Diff(own, outcome(p.EmptyCacheAt(recorded))); d != "" {
		t.Errorf("with the same calls (-own +got):\n%s", d)
	}
	without := p.EmptyCacheAt(nil)
	if n := without.EmptyCaches(); n != nil || without.Len() != p.Len()-3 {
		t.Errorf("left out: %v remain, %d of %d calls", n, without.Len(), p.Len())
	}
	if o := outcome(without); o.Reserved.Bytes <= own.Reserved.Bytes || o.Allocated != own.Allocated || o.DeviceFrees != 0 {
		t.Errorf("left out: %d reserved, %d frees; recorded: %d", o.Reserved.Bytes, o.DeviceFrees, own.Reserved.Bytes)
	}
}

// A call is made before the call of its event and leaves nothing to release.
func TestEmptyCacheMade(t *testing.T) {
	p := checked(t, "snapshots/gpt2_varlen-default")
	at := []int{0, 10000, 30000, p.Trace.Events.Len()}
	q := p.EmptyCacheAt(at)
	if got := q.EmptyCaches(); !slices.Equal(got, at) {
		t.Fatalf("empty_cache at %v, want %v", got, at)
	}
	for i := range p.Len() + len(at) - 1 {
		if a, b := q.Call(i), q.Call(i+1); a.Event > b.Event {
			t.Fatalf("call %d is of event %d, the next one of %d", i, a.Event, b.Event)
		}
	}
	c := replay.Conditions{Settings: settings.Default()}
	before, err := q.Hold(t.Context(), c, 10000)
	if err != nil {
		t.Fatal(err)
	}
	if call, _ := before.Call(); call.Kind != replay.CallEmptyCache || before.Releasable() == 0 {
		t.Errorf("at event 10000: call %+v, %d releasable", call, before.Releasable())
	}
	if _, err := q.RunChecked(t.Context(), c); err != nil {
		t.Error(err)
	}
	end, err := q.Hold(t.Context(), c, p.Trace.Events.Len()+1)
	if err != nil || end.Releasable() != 0 {
		t.Errorf("at the end: %d releasable, %v", end.Releasable(), err)
	}
}
