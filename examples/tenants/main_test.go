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
batch: borrowed 300 MiB
train: failed with 600 MiB; 100 MiB more are not to be had
batch: asked to give 300 MiB back
serve: got its 400 MiB
serve: 400 MiB reserved, 0 MiB borrowed, 400 MiB guaranteed
train: 600 MiB reserved, 0 MiB borrowed, 0 MiB guaranteed
batch: 0 MiB reserved, 0 MiB borrowed, 0 MiB guaranteed
`
