package snapshot_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// The last event of a run that died, and who asked for the memory.
func ExampleOpen() {
	f, err := snapshot.Open(context.Background(), "../testdata/snapshots/gpt2_fixed-tight-default.pickle.gz", snapshot.Options{})
	if err != nil {
		log.Fatal(err)
	}
	t, _, err := f.Pick(-1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Events.Len(), "events,", len(t.Segments), "segments")
	last := t.Events.At(t.Events.Len() - 1)
	fmt.Println(t.Events.ActionName(last.Action), last.Size, "bytes")
	for _, id := range t.Stacks.Frames(last.Stack)[:2] {
		frame := t.Stacks.Frame(id)
		fmt.Printf("  %s, line %d\n", t.Strings.Text(frame.Name), frame.Line)
	}
	// Output:
	// 5737 events, 135 segments
	// oom 823410688 bytes
	//   cross_entropy, line 3504
	//   fixed_cross_entropy, line 40
}

// Counting the events of each kind.
func ExampleFile() {
	f, err := snapshot.Open(context.Background(), "testdata/py_snapshot.pickle", snapshot.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range f.Traces {
		counts := map[trace.Action]int{}
		for i := range t.Events.Len() {
			counts[t.Events.Action.At(i)]++
		}
		for action := range trace.Action(8) {
			fmt.Println(t.Events.ActionName(action), counts[action])
		}
	}
	// Output:
	// alloc 2
	// free_requested 1
	// free_completed 1
	// segment_alloc 2
	// segment_free 1
	// segment_map 0
	// segment_unmap 0
	// oom 1
}
