// Monitor serves batches of very different sizes while a monitor looks at the
// share of memory that lies idle, and gives it back when it is too much.
package main

import (
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/monitor"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/examples/internal/device"
	"github.com/ashlar-mem/ashlar/internal/units"
)

func main() { device.Main(run, device.CUDA, device.Host, device.Sim) }

const mib = 1 << 20

func run(w io.Writer, d driver.Driver) error {
	a := alloc.New(d)
	m, err := monitor.New(a, monitor.Options{
		Measure: monitor.Cached,
		High:    0.6, Low: 0.4, MinReserved: 100 * mib,
		Release: true, MinRelease: 50 * mib, MinPause: 1, // a nanosecond: at every alarm
		Notify: func(r monitor.Report) {
			if r.Before != nil {
				fmt.Fprintf(w, "  %.0f %% of %s lay idle: gave %s back\n",
					100*r.Before.Share(monitor.Cached), units.Size(r.Before.ReservedBytes), units.Size(r.ReleasedBytes))
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
		fmt.Fprintf(w, "a batch of %s\n", units.Size(size*mib))
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
	fmt.Fprintf(w, "%d samples, %d releases of %s in all; %s are reserved now\n",
		c.Samples, c.Releases, units.Size(c.ReleasedBytes), units.Size(a.Usage().Reserved))
	if err := a.Free(model); err != nil {
		return err
	}
	return a.EmptyCache()
}
