package policies

import (
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// HasCurve reports whether a policy can stand beside settings: it is one, and has a
// curve.
func HasCurve(name string) bool {
	return name != Managed && name != ManagedPrefetch && CheckNames([]string{name}) == nil
}

// Variant returns a result in the form of a what-if, for pages that show both. There
// is no line to export, and what a policy does not have is 0.
func (r *Result) Variant(a *Answer) *whatif.Result {
	out := &whatif.Result{Settings: r.Policy, Limit: a.Limit.Bytes, DeviceMemory: a.DeviceMemory.Bytes, Fails: r.Fails}
	set(&out.PeakReserved, r.PeakReserved)
	set(&out.PeakReservedAt, r.PeakReservedAt)
	set(&out.DeviceAllocs, r.DeviceAllocs)
	set(&out.DeviceFrees, r.DeviceFrees)
	set(&out.DriverMS, r.DriverMS)
	if f := r.First; f != nil {
		out.First = &whatif.Failure{
			Moment: f.Moment, Size: f.Size, Stream: f.Stream, Reserved: f.Reserved, Allocated: f.Given, Unallocated: f.Reserved - min(f.Reserved, f.Given),
			Active: f.Given, RecordedToo: f.RecordedToo, AtStart: f.AtStart, Stack: f.Stack, Site: f.Site,
		}
	}
	if c := r.Curve; c != nil {
		n := len(c.Event)
		out.Curve = &whatif.Curve{
			Event: c.Event, Time: c.Time, Reserved: c.Reserved, Active: c.Given, Allocated: c.Given, Requested: c.Requested,
			LargestFree: make([]uint64, n), Fragmentation: make([]float64, n),
		}
		for i := range n {
			out.PeakAllocated, out.PeakRequested = max(out.PeakAllocated, c.Given[i]), max(out.PeakRequested, c.Requested[i])
		}
		out.PeakActive = out.PeakAllocated
		out.Fragmentation = timeline.PeakFragmentation(out.PeakReserved, out.PeakAllocated)
	}
	return out
}

// Choice returns what a policy needs in the form of tune.
func (r *Result) Choice() *tune.Choice {
	out := &tune.Choice{Settings: r.Policy, SmallestLimit: r.SmallestLimit, Need: r.SmallestLimit}
	set(&out.PeakReserved, r.PeakReserved)
	set(&out.DriverMS, r.DriverMS)
	return out
}

// set sets a value that is known.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
