package sim

import (
	"time"
)

// What the calls of the driver cost, in microseconds: the mean of two runs of
// tools/bench/driver/costs.py on an H200, which differed by a factor of up to 1.8,
// and up to 64 MiB of a third.
// Other devices differ too; the figures are for comparing settings, not for
// predicting seconds.
var (
	mallocCost = costs{{2 << 20, 43}, {20 << 20, 45}, {64 << 20, 49}, {200 << 20, 56}, {512 << 20, 75}, {1 << 30, 183}, {2 << 30, 259}, {8 << 30, 896}}
	freeCost   = costs{{2 << 20, 35}, {20 << 20, 48}, {64 << 20, 75}, {200 << 20, 119}, {512 << 20, 250}, {1 << 30, 458}, {2 << 30, 911}, {8 << 30, 4256}}
	// Of one handle: create, map, its share of setting access.
	mapCost = costs{{2 << 20, 38}, {20 << 20, 43}, {64 << 20, 49}, {128 << 20, 56}, {256 << 20, 92}}
	// Of one handle: unmap, release.
	unmapCost = costs{{2 << 20, 30}, {20 << 20, 38}, {64 << 20, 65}, {128 << 20, 98}, {256 << 20, 200}}
)

// What it takes to move managed memory, in microseconds for each MiB: 256 MiB to
// the device and back, measured by ashlar gpu bench on an H200.
const (
	prefetchedMove = 25.3e3 / 512
	onDemandMove   = 78.7e3 / 512
)

// MoveTime estimates how long managed memory of that many bytes takes to be moved
// between host and device: by prefetching, or by faults.
func MoveTime(bytes uint64, prefetched bool) time.Duration {
	us := onDemandMove
	if prefetched {
		us = prefetchedMove
	}
	return time.Duration(float64(bytes) / (1 << 20) * us * float64(time.Microsecond))
}

// What host memory costs that a device reads, as the rows "tier" of ashlar gpu bench time it now: measured on an H200 with
// driver 580 by hand, 256 MiB at a time; kernels that read and write it, copies, exchanging what lies
// behind addresses, and making the pages.
const (
	hostReadRate  = 51e9 // bytes for each second
	hostWriteRate = 52e9
	hostCopyRate  = (256 << 20) / 5e-3
	remapRate     = (256 << 20) / 4e-3
	hostMakeRate  = (1 << 30) / 0.3
)

// What moving handles takes, with everything that belongs to it but the wait for the device and the making of the host's pages: 20 GiB
// in handles of 20 MiB on an H200, tools/bench/gpu/tiers.py --only park.
const (
	moveOutRate = 42e9
	moveInRate  = 51e9
)

// MoveOutTime estimates how long alloc/tier moves that many bytes to the host.
func MoveOutTime(bytes uint64) time.Duration { return atRate(bytes, moveOutRate) }

// MoveInTime estimates how long alloc/tier brings that many bytes back to the device.
func MoveInTime(bytes uint64) time.Duration { return atRate(bytes, moveInRate) }

// RemapTime estimates how long handles of 20 MiB with that many bytes take to be given back and mapped again.
func RemapTime(bytes uint64) time.Duration {
	const granule = 20 << 20
	return unmapTime(bytes, granule) + mapTime(bytes, granule)
}

// HostReadTime estimates how long a kernel reads that many bytes of host memory.
func HostReadTime(bytes uint64) time.Duration { return atRate(bytes, hostReadRate) }

// HostMakeTime estimates how long it takes to make that many bytes of host memory, which stays with a process.
func HostMakeTime(bytes uint64) time.Duration { return atRate(bytes, hostMakeRate) }

// HostWriteTime estimates how long a kernel writes that many bytes of host memory.
func HostWriteTime(bytes uint64) time.Duration { return atRate(bytes, hostWriteRate) }

func atRate(bytes uint64, rate float64) time.Duration {
	return time.Duration(float64(bytes) / rate * float64(time.Second))
}

// How much longer a call of the driver takes after that many microseconds without
// one, in microseconds: means over sizes from 2 to 64 MiB, giving and taking, of a run of
// tools/bench/driver/costs.py --pauses on an H200.
var pauseCost = costs{{0, 0}, {30, 9}, {100, 14}, {300, 25}, {1000, 52}, {longestPause, 115}}

const longestPause = 10_000 // longer ones cost no more

// pauses follows the time between the calls of a program.
type pauses struct {
	called bool
	last   int64         // when the last call was made
	took   time.Duration // and how long it took
}

// call returns how long a call takes that takes that long without a pause before it.
// clock tells when it is made; nil if nobody knows.
func (p *pauses) call(clock func() (us int64, known bool), took time.Duration) time.Duration {
	if clock == nil {
		return took
	}
	now, known := clock()
	if !known {
		return took
	}
	if p.called && now > p.last { // files may have any times
		since, busy := uint64(now)-uint64(p.last), uint64(p.took.Microseconds())
		took += pauseCost.interpolate(min(since-min(since, busy), longestPause))
	}
	p.called, p.last, p.took = true, now, took
	return took
}

// costs are points of a line that is straight between them.
type costs []struct {
	size         uint64
	microseconds float64
}

func (c costs) interpolate(size uint64) time.Duration {
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

// MallocTime estimates how long a driver takes to give memory.
func MallocTime(size uint64) time.Duration { return mallocCost.interpolate(size) }

// FreeTime estimates how long a driver takes to get memory back, without the wait
// for the device.
func FreeTime(size uint64) time.Duration { return freeCost.interpolate(size) }

func mapTime(size, granule uint64) time.Duration {
	return time.Duration(size/granule) * mapCost.interpolate(granule)
}

func unmapTime(size, granule uint64) time.Duration {
	return time.Duration(size/granule) * unmapCost.interpolate(granule)
}

// Cost estimates how long the calls that gave and took memory would have kept
// a real driver busy. Waiting for the device, which Free and Unmap include, is
// not part of it.
func (d *Device) Cost() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cost
}
