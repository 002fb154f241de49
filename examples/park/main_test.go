package main

import (
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/examples/internal/exampletest"
)

func TestRun(t *testing.T) {
	exampletest.Check[driver.Copier](t, run, want, exampletest.Host())
}

const want = `
critic: no room beside the actor
critic: parked, 40 MiB; actor: works with weights of 1
actor: parked, 40 MiB; critic: works with weights of 2
critic: parked, 40 MiB; actor: works with weights of 1
actor: parked, 40 MiB; critic: works with weights of 2
critic: 40 MiB more, 0 MiB of it on the device and 40 MiB on the host
`
