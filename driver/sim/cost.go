package sim

import (
	"time"
)

// What the calls of the driver cost, in microseconds, measured on an H200
// (docs/whatif.md names the command). Other devices differ; the figures are
// for comparing settings, not for predicting seconds.
var (
	mallocCost = costs{{2 << 20, 31}, {20 << 20, 47}, {200 << 20, 110}, {2 << 30, 500}}
	freeCost   = costs{{2 << 20, 31}, {20 << 20, 47}, {200 << 20, 110}, {2 << 30, 500}}
	// Of one handle: create, map, set access.
	mapCost = costs{{2 << 20, 55}, {20 << 20, 79}, {200 << 20, 84}, {1 << 30, 183}}
	// Of one handle: unmap, release.
	unmapCost = costs{{2 << 20, 41}, {20 << 20, 49}, {200 << 20, 129}, {1 << 30, 471}}
)

// costs are points of a line that is straight between them.
type costs []struct {
	size         uint64
	microseconds float64
}

func (c costs) at(size uint64) time.Duration {
	i := 1
	for i < len(c)-1 && size > c[i].size {
		i++
	}
	a, b := c[i-1], c[i]
	us := a.microseconds
	if size > a.size {
		us += (b.microseconds - a.microseconds) * float64(size-a.size) / float64(b.size-a.size)
	}
	return time.Duration(us * float64(time.Microsecond))
}

func mallocTime(size uint64) time.Duration { return mallocCost.at(size) }

func freeTime(size uint64) time.Duration { return freeCost.at(size) }

func mapTime(size, granule uint64) time.Duration {
	return time.Duration(size/granule) * mapCost.at(granule)
}

func unmapTime(size, granule uint64) time.Duration {
	return time.Duration(size/granule) * unmapCost.at(granule)
}

// Cost estimates how long the calls that gave and took memory would have kept
// a real driver busy. Waiting for the device, which Free and Unmap include, is
// not part of it.
func (d *Device) Cost() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cost
}
