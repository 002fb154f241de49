// Package exampletest runs an example on drivers that every machine has and
// compares what it says.
package exampletest

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/examples/internal/device"
)

// Check runs an example on each driver. After the line about the driver it must
// say what is wanted.
func Check(t *testing.T, run func(io.Writer, driver.Driver) error, want string, drivers ...string) {
	t.Helper()
	for _, name := range drivers {
		var out strings.Builder
		if err := device.Run(&out, name, run); err != nil {
			t.Errorf("on %s: %v", name, err)
		}
		first, rest, _ := strings.Cut(out.String(), "\n")
		if !strings.HasSuffix(first, "driver "+name) {
			t.Errorf("on %s it says %q", name, first)
		}
		if d := cmp.Diff(strings.TrimLeft(want, "\n"), rest); d != "" {
			t.Errorf("on %s (-want +got):\n%s", name, d)
		}
	}
}
