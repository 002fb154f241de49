package exampletest

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

const memory = 8 << 30

// Host returns a device that keeps its bytes in host memory.
func Host() *host.Device { return host.New(host.Config{Memory: memory}) }

// Sim returns a device without bytes.
func Sim() *sim.Device { return sim.New(sim.Config{TotalMemory: memory}) }

// Check runs an example on each device, closes the device and compares the
// output.
func Check[D driver.Driver](t *testing.T, run func(io.Writer, D) error, want string, devices ...D) {
	t.Helper()
	for _, d := range devices {
		var out strings.Builder
		if err := run(&out, d); err != nil {
			t.Errorf("on %T: %v", d, err)
		}
		if diff := cmp.Diff(strings.TrimLeft(want, "\n"), out.String()); diff != "" {
			t.Errorf("on %T (-want +got):\n%s", d, diff)
		}
		if c, ok := driver.Driver(d).(io.Closer); ok {
			if err := c.Close(); err != nil {
				t.Errorf("closing %T: %v", d, err)
			}
		}
	}
}
