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
while the consumer reads a request gets other memory
when it has read a request gets the same memory
the consumer has read what the producer wrote
`
