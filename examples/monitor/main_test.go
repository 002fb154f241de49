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
a batch of 20.00 MiB
a batch of 40.00 MiB
a batch of 80.00 MiB
a batch of 160.00 MiB
  75 % of 400.00 MiB lay idle: gave 300.00 MiB back
a batch of 320.00 MiB
  76 % of 420.00 MiB lay idle: gave 320.00 MiB back
a batch of 20.00 MiB
8 samples, 2 releases of 620.00 MiB in all; 120.00 MiB are reserved now
`
