package oracle_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ashlar-mem/ashlar/internal/replay/oracle"
)

func ExampleVerify() {
	ctx := context.Background()
	rec, err := oracle.Load(ctx, oracle.File("../../../testdata/oracle/lessons-default-1.json.gz"))
	if err != nil {
		log.Fatal(err)
	}
	result, err := oracle.Verify(ctx, rec)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, PyTorch %s: %d of %d events identical\n", rec.Workload, rec.Torch, result.IdenticalEvents, result.Events)

	// A recording that was tampered with differs, and the result says where.
	rec.Trace[120].Size++
	result, err = oracle.Verify(ctx, rec)
	if err != nil {
		log.Fatal(err)
	}
	d := result.First
	fmt.Printf("%s in operation %d (%s) after %d events\n", d.What, d.Operation, d.OperationText, d.Event)
	// Output:
	// lessons, PyTorch 2.11.0+cu130: 545 of 545 events identical
	// another event in operation 100 (free tensor 1) after 120 events
}
