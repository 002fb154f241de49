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
a batch of 20 MiB
a batch of 40 MiB
a batch of 80 MiB
a batch of 160 MiB
  75 % of 400 MiB lay idle: gave 300 MiB back
a batch of 320 MiB
  76 % of 420 MiB lay idle: gave 320 MiB back
a batch of 20 MiB
8 samples, 2 releases of 620 MiB in all; 120 MiB are reserved now
`
