//go:build linux

package main

import (
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/examples/internal/exampletest"
)

// The example on a GPU, with a stand-in for NVIDIA's driver.
func TestRunCUDA(t *testing.T) {
	cudatest.Use(t)
	*folder = t.TempDir()
	gpu, ok := open().(*cuda.Device)
	if !ok {
		t.Fatal("the GPU is not chosen")
	}
	exampletest.Check[driver.Copier](t, run, want, gpu)
}
