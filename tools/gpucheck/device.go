package main

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// rig is a device and what the checks need of it besides.
type rig struct {
	dev   driver.Copier
	close func() error
	// painter makes an independent painter with so many places for results.
	painter func(slots int) (painter, error)
}

// hostMemory is the size of a device in host memory. It takes only what is
// touched, and the recordings touch nothing.
const hostMemory = 256 << 30

// openRig opens a device by the name of its driver.
func openRig(name string) (*rig, error) {
	switch name {
	case "cuda":
		return openCUDA()
	case "host":
		dev := host.New(host.Config{Memory: hostMemory})
		return &rig{dev: dev, close: dev.Close, painter: func(slots int) (painter, error) { return newHostPainter(dev, slots), nil }}, nil
	}
	return nil, fmt.Errorf("unknown driver %q; known are cuda, host", name)
}

// deviceInfo says which device it was.
type deviceInfo struct {
	Name       string `json:"name"`
	TotalBytes uint64 `json:"total_bytes"`
	FreeBytes  uint64 `json:"free_bytes"`
}

func (d deviceInfo) String() string {
	return fmt.Sprintf("%s: %s, %s free", d.Name, units.Size(d.TotalBytes), units.Size(d.FreeBytes))
}

func describeDevice(dev driver.Copier) deviceInfo {
	free, _, _ := dev.MemInfo() // for the reader; the checks do not need it
	d := deviceInfo{Name: "a device", TotalBytes: dev.TotalMemory(), FreeBytes: free}
	switch dev := dev.(type) {
	case *cuda.Device:
		d.Name = dev.Info().Name
	case *host.Device:
		d.Name = "host memory"
	}
	return d
}
