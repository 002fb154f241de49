package replay_test

import (
	"context"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// The peak of live bytes is that of rounded requests, at the call that brings it.
func TestPeakLiveOfCalls(t *testing.T) {
	calls := []replay.Call{
		{Kind: replay.CallAlloc, Tensor: 0, Size: 1},
		{Kind: replay.CallAlloc, Tensor: 1, Size: 513},
		{Kind: replay.CallFree, Tensor: 0},
		{Kind: replay.CallAlloc, Tensor: 2, Size: 512},
		{Kind: replay.CallEmptyCache, Tensor: -1},
		{Kind: replay.CallAlloc, Tensor: 3, Size: 5000},
	}
	p, err := replay.NewProgram(settings.Default(), len(calls), func(i int) replay.Call { return calls[i] })
	if err != nil {
		t.Fatal(err)
	}
	if bytes, call := p.PeakLive(); bytes != 1024+512+5120 || call != 5 {
		t.Errorf("%d bytes at call %d", bytes, call)
	}
}

// No setting reserves less than what is live, and what is there before the first
// event counts.
func TestPeakLiveIsABound(t *testing.T) {
	for _, name := range []string{"variety/ring", "snapshots/streams_graphs-default", "advice/side_stream"} {
		f, err := snapshot.Open(context.Background(), "../../testdata/"+name+".pickle.gz", snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := programOf(t, f.Traces[0])
		live, _ := p.PeakLive()
		o, err := p.Run(t.Context(), replay.Conditions{Settings: alloc.Tightest(), SkipOOM: true})
		if err != nil {
			t.Fatal(err)
		}
		if live == 0 || live > o.Active.Bytes || o.AtPeak.Active > o.Reserved.Bytes || o.AtPeak.Requested == 0 {
			t.Errorf("%s: live %d, active %d, at the peak of %d reserved: %+v", name, live, o.Active.Bytes, o.Reserved.Bytes, o.AtPeak)
		}
		n := 0
		p.EachFirst(func(tensor int, c replay.Call) {
			if tensor != n || c.Size == 0 {
				t.Errorf("%s: tensor %d is %+v", name, n, c)
			}
			n++
		})
		if n != p.Initial() {
			t.Errorf("%s: %d of %d tensors at the beginning", name, n, p.Initial())
		}
	}
}
