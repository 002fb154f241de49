package sim_test

import (
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

func Example() {
	d := sim.New(sim.Config{TotalMemory: 64 << 20, Events: sim.Manual})
	addr, _ := d.Malloc(20<<20, 0)
	fmt.Printf("%#x, %d bytes held\n", addr, d.Held())

	_, err := d.Malloc(60<<20, 0)
	fmt.Println(errors.Is(err, driver.ErrOutOfMemory), err)

	ev, _ := d.RecordEvent(0, addr)
	before, _ := d.EventDone(ev)
	d.Complete(0)
	after, _ := d.EventDone(ev)
	fmt.Println(before, after)

	fmt.Println(d.Free(addr+512, 1<<20))
	// Output:
	// 0x7efffe600000, 20971520 bytes held
	// true sim: out of memory: malloc of 60.00 MiB with 44.00 MiB free
	// false true
	// sim: misuse of the device: free of 0x7efffe600200, where no segment begins
}
