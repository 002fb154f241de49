package export_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/parquet-go/parquet-go"

	"github.com/ashlar-mem/ashlar/internal/present/export"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func ExampleParquet() {
	ctx := context.Background()
	f, err := snapshot.Open(ctx, "../../../testdata/variety/midrun.pickle.gz", snapshot.Options{})
	if err != nil {
		panic(err)
	}
	var events, stacks bytes.Buffer
	if err := export.Parquet(ctx, &events, &stacks, f.Traces, export.Options{}); err != nil {
		panic(err)
	}
	rows, err := parquet.Read[export.EventRow](bytes.NewReader(events.Bytes()), int64(events.Len()))
	if err != nil {
		panic(err)
	}
	first := rows[0]
	fmt.Println(len(rows), first.Action, first.Size, first.ReservedBytes, first.RequestedBytes)
	// Output: 16867 alloc 9136 5010096128 1561444272
}
