package tune

import (
	"context"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func program(t testing.TB, file string) *replay.Program {
	t.Helper()
	f, err := snapshot.Open(context.Background(), "../testdata/"+file+".pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.CheckProgram(context.Background(), f.Traces[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLook(t *testing.T) {
	for _, n := range []string{"gpt2_fixed-tight", "gpt2_varlen-tight", "llama_ckpt-tight", "serve_generate-tight", "moe_train", "leak_graph", "ckpt_spike", "unet_multires", "resnet_batches", "streams_graphs", "serve_generate"} {
		r, err := Search(context.Background(), program(t, "snapshots/"+n+"-default"), Options{Budget: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: evaluated %d in %v finished %v lower bound %d MiB; current %d, recommended %q: %s", n, r.Evaluated, r.Elapsed, r.Finished, r.LowerBound>>20, r.Current.SmallestLimit>>20, r.Recommended.Settings, r.Reason)
		for _, c := range r.Front {
			t.Logf("    %6d %6d MiB, peak %6d MiB, %8v  %s", c.Need>>20, c.SmallestLimit>>20, c.PeakReserved>>20, c.DriverTime, c.Settings)
		}
	}
}
