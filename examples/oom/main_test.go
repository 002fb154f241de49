package main

import (
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/examples/internal/exampletest"
)

func TestRun(t *testing.T) {
	exampletest.Check[driver.Driver](t, run, want, exampletest.Host(), exampletest.Sim())
}

const want = `
no room for 100 MiB: dropped a result
no room for 100 MiB: dropped a result
no room for 100 MiB: dropped a result
served, with 3 results left and 0 failures

no room for 60 MiB, and nothing left to drop
asked for 60 MiB; limit 256 MiB, reserved 240 MiB, allocated 120 MiB
what is in use (120.00 MiB) and the request (60.00 MiB) would fit into the 256.00 MiB that are allowed; 120.00 MiB is free but cannot serve it: 120.00 MiB in pieces of at most 20.00 MiB. With expandable_segments:True free pieces need not lie side by side.
`
