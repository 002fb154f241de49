//go:build linux

package main

import (
	"testing"

	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/examples/internal/device"
	"github.com/ashlar-mem/ashlar/examples/internal/exampletest"
)

// The example over driver/cuda, with a stand-in for NVIDIA's driver.
func TestRunCUDA(t *testing.T) {
	cudatest.Use(t)
	*folder = t.TempDir()
	exampletest.Check(t, run, want, device.CUDA)
}
