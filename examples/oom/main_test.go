package main

import (
	"testing"

	"github.com/ashlar-mem/ashlar/examples/internal/device"
	"github.com/ashlar-mem/ashlar/examples/internal/exampletest"
)

func TestRun(t *testing.T) {
	exampletest.Check(t, run, want, device.Host, device.Sim)
}

const want = `
no room for 100.00 MiB: dropped a result
no room for 100.00 MiB: dropped a result
no room for 100.00 MiB: dropped a result
served, with 3 results left and 0 failures

no room for 60.00 MiB, and nothing left to drop
asked for 60.00 MiB; limit 256.00 MiB, reserved 240.00 MiB, allocated 120.00 MiB
what is in use (120.00 MiB) and the request (60.00 MiB) would fit into the 256.00 MiB that are allowed; 120.00 MiB is free but cannot serve it: 120.00 MiB in pieces of at most 20.00 MiB. With expandable_segments:True free pieces need not lie side by side.
`
