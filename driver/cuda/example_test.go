package cuda_test

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/cuda"
)

// The engine serves memory of the first GPU.
func Example() {
	lib, err := cuda.Open()
	if err != nil {
		fmt.Println(err) // no NVIDIA driver: ...
		return
	}
	dev, err := lib.Device(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()

	a := alloc.New(dev)
	stream, err := dev.NewStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	addr, err := a.Malloc(1<<20, stream)
	if err != nil {
		fmt.Println(err) // out of memory, with the numbers
		return
	}
	_ = dev.Fill(addr, 0, 1<<20, stream)
	_ = a.Free(addr)
}
