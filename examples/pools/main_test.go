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
all at work
  default segments: 1, reserved: 12.00 MiB, allocated: 12.00 MiB
  search  segments: 2, reserved: 22.00 MiB, allocated: 15.29 MiB
  chat    segments: 3, reserved: 90.00 MiB, allocated: 90.00 MiB
chat has left
  default segments: 1, reserved: 12.00 MiB, allocated: 12.00 MiB
  search  segments: 2, reserved: 22.00 MiB, allocated: 15.29 MiB
  chat    segments: 0, reserved:       0 B, allocated:       0 B
`
