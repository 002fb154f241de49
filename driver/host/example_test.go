package host_test

import (
	"fmt"
	"log"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/host"
)

// The engine over memory with real bytes.
func Example() {
	d := host.New(host.Config{Memory: 256 << 20})
	defer d.Close()
	a := alloc.New(d)

	addr, err := a.Malloc(1<<20, 0)
	if err != nil {
		log.Fatal(err)
	}
	hello := make([]byte, 5)
	if err := d.CopyToDevice(addr, []byte("hello"), 0); err != nil {
		log.Fatal(err)
	}
	if err := d.CopyToHost(hello, addr, 0); err != nil {
		log.Fatal(err)
	}
	if err := d.Synchronize(0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", hello)
	// Output:
	// hello
}
