package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/monitor"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/host"
)

func main() {
	if err := run(os.Stdout, open()); err != nil {
		log.Fatal(err)
	}
}

const mib = 1 << 20

func run(w io.Writer, d driver.Driver) error {
	a := alloc.New(d)
	m, err := monitor.New(a, monitor.Options{
		Measure: monitor.Cached,
		High:    0.6, Low: 0.4, MinReserved: 100 * mib,
		Release: true, MinRelease: 50 * mib, MinPause: 1, // a nanosecond: at every alarm
		Notify: func(r monitor.Report) {
			if r.Before != nil {
				fmt.Fprintf(w, "  %.0f %% of %d MiB lay idle: gave %d MiB back\n",
					100*r.Before.Share(monitor.Cached), r.Before.ReservedBytes/mib, r.ReleasedBytes/mib)
			} else {
				fmt.Fprintf(w, "  alarm %v at %.0f %%\n", r.Alarm, 100*r.Share)
			}
		},
	})
	if err != nil {
		return err
	}
	model, err := a.Malloc(100*mib, 0)
	if err != nil {
		return err
	}
	// A service would say `go m.Run(ctx)`. Here the monitor is asked after each
	// batch, so that the example says the same every time.
	for _, size := range []uint64{20, 40, 80, 160, 320, 20} {
		fmt.Fprintf(w, "a batch of %d MiB\n", size)
		batch, err := a.Malloc(size*mib, 0)
		if err != nil {
			return err
		}
		if err := a.Free(batch); err != nil {
			return err
		}
		m.Check()
	}
	c := m.Counters()
	fmt.Fprintf(w, "%d samples, %d releases of %d MiB in all; %d MiB are reserved now\n",
		c.Samples, c.Releases, c.ReleasedBytes/mib, a.Usage().Reserved/mib)
	if err := a.Free(model); err != nil {
		return err
	}
	return a.EmptyCache()
}

// open returns the first GPU, or host memory on a machine without one.
func open() driver.Copier {
	lib, err := cuda.Open()
	if err == nil {
		var gpu *cuda.Device
		if gpu, err = lib.Device(0); err == nil {
			log.Println("memory of", gpu.Info().Name)
			return gpu
		}
	}
	log.Println("no GPU is used:", err)
	return host.New(host.Config{Memory: 8 << 30})
}
