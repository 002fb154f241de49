package diff_test

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func Example() {
	ctx := context.Background()
	f, err := snapshot.Open(ctx, "../../../testdata/snapshots/leak_graph-default.pickle.gz", snapshot.Options{})
	if err != nil {
		panic(err)
	}
	table := diff.NewTable()
	source := diff.Source{File: f.Name, Run: run.New(f.Traces[0], nil)}
	sides, err := table.Sides(ctx, source, []diff.At{diff.Step(3), diff.Step(10)})
	if err != nil {
		panic(err)
	}
	d := table.Compare(sides[0], sides[1])
	top := d.Stacks[0]
	fmt.Println(units.Delta(d.Delta), "in all;", top.Change, units.Delta(top.Delta), "at", top.Site)
	// Output:
	// +246.98 MiB in all; grown +252.20 MiB at linear.py:134 forward < train.py:227 w_leak_graph
}
