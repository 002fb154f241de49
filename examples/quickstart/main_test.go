package main

import (
	"testing"

	"github.com/ashlar-mem/ashlar/examples/internal/device"
	"github.com/ashlar-mem/ashlar/examples/internal/exampletest"
)

func TestRun(t *testing.T) {
	exampletest.Check(t, run, want, device.Host)
}

const want = `
after a request of 3 MiB:  3.00 MiB allocated, 20.00 MiB reserved
came back: hello, device
after the free:                 0 B allocated, 20.00 MiB reserved
after emptying the cache:       0 B allocated,       0 B reserved
`
