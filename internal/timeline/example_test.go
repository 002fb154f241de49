package timeline_test

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func Example() {
	ctx := context.Background()
	f, err := snapshot.Open(ctx, "../../testdata/variety/expand_tight.pickle.gz", snapshot.Options{})
	if err != nil {
		panic(err)
	}
	t := f.Traces[0]
	v, err := verify.Run(ctx, t, verify.Options{})
	if err != nil {
		panic(err)
	}
	line := timeline.New(t, timeline.Options{Start: v.Start, Sizes: v.Sizes})

	peak := line.Peaks().Allocated
	fmt.Println("most was allocated at event", peak.Event, "in step", timeline.NewAnnotations(t).At(peak.Time).Step)
	fmt.Println(units.Size(peak.Value), "allocated of", units.Size(peak.Totals.Reserved), "reserved")

	c := line.Cursor()
	for c.Next() {
		if c.Totals.Requested >= 8<<30 {
			fmt.Println("8 GiB were passed at event", c.Index)
			break
		}
	}
	// Output:
	// most was allocated at event 13983 in step 4
	// 8.65 GiB allocated of 8.79 GiB reserved
	// 8 GiB were passed at event 13981
}
