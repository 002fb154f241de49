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
after a request of 3 MiB: 3 MiB allocated, 20 MiB reserved
came back: hello, device
after the free:           0 MiB allocated, 20 MiB reserved
after emptying the cache: 0 MiB allocated,  0 MiB reserved
`
