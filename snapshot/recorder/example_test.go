package recorder_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

// What the recorder adds to a snapshot.
func ExampleRead() {
	file, err := snapshot.Open(context.Background(), "testdata/oom.pickle", snapshot.Options{})
	if err != nil {
		log.Fatal(err)
	}
	f := recorder.Read(file.Extra)
	if f == nil {
		log.Fatal("a snapshot without facts")
	}
	fmt.Printf("%s in step %d of rank %d\n", f.Reason, *f.Step, *f.Rank)
	fmt.Printf("%s asked, %s allowed\n", units.Size(*f.RequestBytes), units.Size(*f.LimitBytes))
	fmt.Println(f.MemoryStats[*f.Device].Values["num_alloc_retries"], "retry")
	// Output:
	// oom in step 12 of rank 3
	// 30.00 MiB asked, 40.00 MiB allowed
	// 1 retry
}
