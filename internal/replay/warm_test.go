package replay_test

import (
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// growing allocates n tensors of 30 MiB, each in a segment of its own.
func growing(t *testing.T, n int) *replay.Program {
	t.Helper()
	p, err := replay.NewProgram(settings.Default(), n, func(i int) replay.Call {
		return replay.Call{Kind: replay.CallAlloc, Tensor: i, Size: 30 << 20}
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The driver's work counts from the call that was asked for, wherever it ends.
func TestWarm(t *testing.T) {
	p := growing(t, 10)
	whole, err := p.Run(t.Context(), replay.Conditions{Settings: p.Settings})
	if err != nil || whole.Warm.Calls != 10 || whole.Warm.Time != whole.DriverTime {
		t.Errorf("%+v, %v", whole.Warm, err)
	}
	for from, want := range map[int]int64{3: 7, 10: 0, 99: 0} {
		o, err := p.Run(t.Context(), replay.Conditions{Settings: p.Settings, WarmFrom: from})
		if err != nil || o.Warm.Calls != want || o.Warm.Time != whole.DriverTime*time.Duration(want)/10 || o.DeviceAllocs != 10 {
			t.Errorf("from call %d: %+v, %v", from, o.Warm, err)
		}
	}
	o, err := p.Run(t.Context(), replay.Conditions{Settings: p.Settings, WarmFrom: 3, Limit: 150 << 20})
	if err != nil || !o.Fails || o.Warm.Calls != 2 {
		t.Errorf("up to a failure: %+v, %v", o.Warm, err)
	}
}

// A run that reserves more than is of interest is given up.
func TestGiveUp(t *testing.T) {
	const n = 20_000
	p := growing(t, n)
	o, err := p.Run(t.Context(), replay.Conditions{Settings: p.Settings, GiveUp: 1 << 30})
	if err != nil || !o.GaveUp || o.Fails || o.Calls >= n || o.Reserved.Bytes <= 1<<30 {
		t.Errorf("%d calls, %d reserved, given up %v, %v", o.Calls, o.Reserved.Bytes, o.GaveUp, err)
	}
	o, err = p.Run(t.Context(), replay.Conditions{Settings: p.Settings, GiveUp: n * 30 << 20})
	if err != nil || o.GaveUp || o.Calls != n {
		t.Errorf("%d calls, given up %v, %v", o.Calls, o.GaveUp, err)
	}
}
