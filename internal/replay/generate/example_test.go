package generate_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/replay/generate"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func ExampleWrite() {
	ctx := context.Background()
	recorded, err := snapshot.Open(ctx, "../../../testdata/variety/graphs.pickle.gz", snapshot.Options{})
	if err != nil {
		panic(err)
	}
	var file bytes.Buffer
	options := generate.Options{Events: 10_000, StackDepth: 40, DistinctStacks: 500}
	if _, err := generate.Write(ctx, &file, recorded.Traces[0], options); err != nil {
		panic(err)
	}
	made, err := snapshot.Read(ctx, "made", &file, snapshot.Options{})
	if err != nil {
		panic(err)
	}
	v, err := verify.Run(ctx, made.Traces[0], verify.Options{})
	if err != nil {
		panic(err)
	}
	result := v.Result
	fmt.Println(recorded.Traces[0].Events.Len(), result.Events, result.Identical)
	// Output: 105 10000 true
}
