package recorded_test

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

func Example() {
	d := recorded.New(recorded.Config{
		TotalMemory: 80 << 30,
		Events: recorded.List{
			{Action: alloc.ActionSegmentAlloc, Addr: 0x7f0000000000, Size: 2 << 20, Op: -1},
			{Action: alloc.ActionAlloc, Addr: 0x7f0000000000, Size: 1000, Op: -1},
		},
	})
	addr, err := d.Malloc(2<<20, 0)
	fmt.Printf("%#x %v\n", addr, err)
	d.Advance() // the engine emitted segment_alloc
	d.Advance() // and alloc
	_, err = d.Malloc(2<<20, 0)
	fmt.Println(err)
	// Output:
	// 0x7f0000000000 <nil>
	// recorded device: asked for a segment of 2097152 bytes on stream 0, where the recording has no further event of this operation: out of memory
}
