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
while the consumer reads: a request gets another block
when it has read: a request gets the same block
the consumer has read what the producer wrote
`
