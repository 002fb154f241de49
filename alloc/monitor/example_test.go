package monitor_test

import (
	"fmt"
	"log"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/monitor"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// A monitor that is asked after each batch instead of running by itself.
func ExampleMonitor_Check() {
	a := alloc.New(sim.New(sim.Config{}))
	m, err := monitor.New(a, monitor.Options{High: 0.5, Release: true, MinRelease: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	for _, size := range []uint64{100 << 20, 300 << 20} {
		batch, err := a.Malloc(size, 0)
		if err != nil {
			log.Fatal(err)
		}
		if err := a.Free(batch); err != nil {
			log.Fatal(err)
		}
	}
	r := m.Check()
	fmt.Printf("%.0f %% cached, %d MiB given back\n", 100*r.Before.Share(monitor.Cached), r.ReleasedBytes>>20)
	// Output:
	// 100 % cached, 400 MiB given back
}
