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
fragmentation: 120.00 MiB are free, but the largest piece is 20.00 MiB; 0 B of them could be given back
`
