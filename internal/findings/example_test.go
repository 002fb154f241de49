package findings_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func Example() {
	ctx := context.Background()
	f, err := snapshot.Open(ctx, "../../testdata/snapshots/leak_graph-default.pickle.gz", snapshot.Options{})
	if err != nil {
		log.Fatal(err)
	}
	t, _, err := f.Pick(-1)
	if err != nil {
		log.Fatal(err)
	}
	v, err := verify.Run(ctx, t, verify.Options{})
	if err != nil {
		log.Fatal(err)
	}
	line := timeline.New(t, timeline.Options{Start: v.Start, Sizes: v.Sizes})
	a := findings.New(timeline.NewLifetimes(line), timeline.NewAnnotations(t))
	fmt.Printf("%d steps (%s): %s\n", a.Steps.Complete(), a.Steps.Confidence, a.Steps.Detail)
	for _, l := range a.Leaks() {
		site, _ := timeline.SiteOf(t, l.Stack)
		fmt.Printf("leak (%s): %s a step, from %s to %s, in %d of %d steps\n  %s\n", l.Confidence,
			units.Size(l.BytesPerStep), units.Size(l.LeastPerStep), units.Size(l.MostPerStep), len(l.KeptIn), l.Steps, site)
	}
	for _, c := range a.Holders(a.PeakEvent()).Categories {
		fmt.Printf("%s of %s (%s)\n", units.Size(c.Bytes), c.Category, c.Confidence())
	}
	// Output:
	// 12 steps (certain): 12 ranges Optimizer.step#AdamW.step of torch.optim
	// leak (certain): 39.79 MiB a step, from 26.37 MiB to 48.22 MiB, in 12 of 12 steps
	//   linear.py:134 forward < train.py:227 w_leak_graph
	// 824.00 MiB of activations (likely)
	// 132.85 MiB of optimizer_state (certain)
	// 89.36 MiB of temporaries (certain)
	// 66.11 MiB of parameters (certain)
	// 65.00 MiB of workspace (likely)
}
