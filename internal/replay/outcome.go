package replay

import (
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Conditions are what a [Program] runs under.
type Conditions struct {
	Settings settings.Settings
	// Limit is the cap on reserved bytes; 0 is none.
	Limit uint64
	// DeviceMemory is what the device has for the allocator; 0 is unlimited.
	DeviceMemory uint64
	// SkipOOM skips a request that fails, and its free, and goes on. Otherwise
	// the run ends at the first failure.
	SkipOOM bool
	// Points is the length of the curve; 0 is no curve.
	Points int
	// From is the first call that counts towards peaks and the curve. The calls
	// before it are made too.
	From int
	// WarmFrom is the call from which [Outcome].Warm counts the driver's work.
	WarmFrom int
	// GiveUp ends a run soon after more than this was reserved; 0 is never.
	GiveUp uint64
	// BlockSizes asks for the size of every tensor's block.
	BlockSizes bool
	// Mirrored makes the driver place segments from high addresses to low, if the
	// program begins without any.
	Mirrored bool
	// Progress is called now and then with the number of calls done.
	Progress func(done, total int)
	// Observe is called with every event of the allocator and the call that
	// caused it. It must not call the allocator.
	Observe func(call int, e alloc.Event)
}

// Cap returns the limit in force, 0 for none: the lower of Limit and the
// fraction of the device in the settings.
func (c *Conditions) Cap() uint64 {
	limit := c.Limit
	if f := c.Settings.PerProcessMemoryFraction; f < 1 && c.DeviceMemory > 0 {
		if part := max(uint64(f*float64(c.DeviceMemory)), 1); limit == 0 || part < limit {
			limit = part
		}
	}
	return limit
}

// Outcome is what became of a Program under some Conditions.
type Outcome struct {
	Conditions Conditions
	// Fails reports whether a request failed; First is the first that did.
	Fails bool
	First *Failure
	// Calls is how many calls were made: all of them unless a failure ended the run.
	Calls int

	// StartReleased is the cached memory of a start state that was released
	// before the first call because the state exceeds the limit or the device.
	// Peaks and counts begin after that.
	StartReleased uint64

	Reserved, Allocated, Active, Requested High
	// AtPeak are the totals when Reserved was reached.
	AtPeak PeakTotals

	Retries, OOMs             int64
	LeastRefused              uint64 // by the limit: the least reserved total; 0 if it refused none
	DeviceAllocs, DeviceFrees int64  // as PyTorch counts them: mappings too
	Maps, Unmaps              int64
	// DriverTime estimates how long the driver was busy giving and taking
	// memory; see driver/sim.
	DriverTime time.Duration
	// Warm is the driver's work from the call WarmFrom on.
	Warm DriverWork
	// GaveUp reports whether more than GiveUp was reserved.
	GaveUp bool

	Curve []Point
	Stats alloc.Stats
	// BlockSizes has the size of each tensor's block, 0 if it got none; nil
	// unless asked for.
	BlockSizes []uint64
	// Segments are those at the end; nil unless the run was observed.
	Segments []alloc.Segment
}

// PeakTotals are bytes at one moment.
type PeakTotals struct{ Allocated, Active, Requested uint64 }

// DriverWork is what the driver did: calls that gave or took memory, as PyTorch
// counts them, and the time that these are estimated to take.
type DriverWork struct {
	Calls int64
	Time  time.Duration
}

// High is the highest value of a total and the event at which it was reached.
type High struct {
	Bytes uint64
	Event int   // -1: before the first event
	Time  int64 // trace.NoTime if unknown
}

// Failure is a request that could not be served.
type Failure struct {
	Event int
	Time  int64
	Stack trace.StackID
	// RecordedToo: it failed in the recording as well.
	RecordedToo bool
	// AtStart: no request failed, but the part of the start state that cannot be
	// released exceeds the limit or the device. Event is -1.
	AtStart bool
	*alloc.OutOfMemoryError
	Active, LargestFree uint64 // when it failed
}

// Point is a piece of a curve: the highest totals since the previous point, and
// the state at its end.
type Point struct {
	Event                                  int
	Time                                   int64
	Reserved, Allocated, Active, Requested uint64 // highest
	ReservedNow, AllocatedNow              uint64
	LargestFree                            uint64
}

// Fragmentation returns the part of reserved memory that was not allocated.
func (p Point) Fragmentation() float64 {
	if p.ReservedNow == 0 {
		return 0
	}
	return 1 - float64(p.AllocatedNow)/float64(p.ReservedNow)
}

// ConditionError says that a program cannot be run under some conditions.
type ConditionError struct{ Problem string }

func (e *ConditionError) Error() string { return e.Problem }

// Runnable returns why a program cannot run under some conditions, or nil.
func (p *Program) Runnable(c Conditions) error {
	switch {
	case p.Start.Kind == start.Unknown:
		return &ConditionError{"the trace cannot be replayed: it begins mid-run and the file ends before its state"}
	case c.Settings.Backend != settings.Native:
		return &ConditionError{"backend:" + c.Settings.Backend + " is another allocator, which cannot be replayed"}
	case alloc.MappingProblem(c.Settings) != "":
		return &ConditionError{alloc.MappingProblem(c.Settings)}
	case c.Settings.PerProcessMemoryFraction < 1 && c.DeviceMemory == 0 && c.Limit == 0:
		return &ConditionError{"per_process_memory_fraction is a part of the device, whose size is not known; give the device's memory or a limit"}
	}
	return nil
}
