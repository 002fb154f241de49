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
all at work
  default 1 segments, 12 MiB reserved, 12.0 MiB allocated
  search  2 segments, 22 MiB reserved, 15.3 MiB allocated
  chat    3 segments, 90 MiB reserved, 90.0 MiB allocated
chat has left
  default 1 segments, 12 MiB reserved, 12.0 MiB allocated
  search  2 segments, 22 MiB reserved, 15.3 MiB allocated
  chat    0 segments,  0 MiB reserved,  0.0 MiB allocated
`
