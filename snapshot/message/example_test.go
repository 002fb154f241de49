package message_test

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

func ExampleParse() {
	log := `[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total
[rank3]: capacity of 79.15 GiB of which 10.25 MiB is free. Of the allocated memory 70.00 GiB is allocated by
[rank3]: PyTorch, and 8.42 GiB is reserved by PyTorch but unallocated.`
	all, err := message.Parse(log)
	if err != nil {
		panic(err)
	}
	o := all[0]
	reserved, _ := o.Reserved()
	fmt.Println(o.Exception, o.Version, "GPU", o.Device)
	fmt.Println("tried", units.Size(o.TriedBytes.Mid), "free", units.Size(o.FreeBytes.Mid), "reserved", units.Size(reserved.Mid))
	fmt.Println("reserved is between", reserved.Low, "and", reserved.High)
	// Output:
	// torch.OutOfMemoryError 2.4+ GPU 3
	// tried 20.00 MiB free 10.25 MiB reserved 78.42 GiB
	// reserved is between 84192096420 and 84213571256
}
