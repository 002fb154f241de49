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
a request to translate: shared false  8 MiB allocated
a request to translate: shared true   8 MiB allocated
a request to summarise: shared false 16 MiB allocated
a request to translate: shared true  16 MiB allocated
8 MiB are not released, 1 holder
after the last release: alive false, 0 MiB allocated
`
