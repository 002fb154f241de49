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
step 1, batch 1:  6 MiB at most, 16 MiB in chunks
step 2, batch 2: 12 MiB at most, 16 MiB in chunks
step 3, batch 4: 24 MiB at most, 32 MiB in chunks
step 4, batch 2: 12 MiB at most, 32 MiB in chunks
32 MiB go back to the allocator
`
