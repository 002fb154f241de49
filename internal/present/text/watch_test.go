package text

import (
	"bytes"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/watch"
)

func of[T any](v T) *T { return &v }

func TestWatch(t *testing.T) {
	st := watch.Status{
		Runs: []watch.RunStatus{
			{
				Run: "train.py", World: 2, Rank: 0, GPU: of(0), LastSeenS: 0.4, Step: of[int64](1200), AllocatedBytes: of[int64](20 << 30), ReservedBytes: of[int64](24 << 30),
				Fragmentation: of(0.12), HeadroomBytes: of[int64](50 << 30), GrowthBytesPerStep: of(1048576.0), Alarms: []string{"growth", "oom"},
			},
			{Run: "train.py", Attempt: 1, World: 2, Rank: 1, LastSeenS: 90, Ended: true},
		},
		Alarms: []watch.Alarm{{
			Name: "oom", Run: "train.py", Value: 0.0166, ValueText: "0.0166/s", RaisedUS: 1_800_000_000_000_000, ClearedUS: of[int64](1_800_000_030_000_000),
			Actions: []watch.Action{{Action: "log", Result: "logged"}, {Action: "empty_cache", Result: "done", Before: of[int64](2 << 30), After: of[int64](1 << 30)}, {Action: "snapshot"}},
		}},
		LostSamples: 3, Notes: []string{"a note\x1b[2J"},
	}
	var out bytes.Buffer
	if err := Watch(&out, &st, Style{Width: 100}); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, want := range []string{
		"  run                   rank  gpu   seen   step  allocated   reserved  frag   headroom      alarms\n", // too narrow for all
		"  train.py                 0    0    0 s  1,200  20.00 GiB  24.00 GiB  12 %  50.00 GiB  growth oom\n",
		"  empty_cache: done, reserved 2.00 GiB before and 1.00 GiB after\n",
		"    snapshot: under way\n",
		"train.py rank 0, value 0.0166/s, cleared after 30.0 s\n",
		"3 samples were lost",
	} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if bytes.ContainsRune(out.Bytes(), '\x1b') {
		t.Error("a note moves the cursor")
	}
}
