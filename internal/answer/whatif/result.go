package whatif

import (
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Result is what became of a recorded run under some settings.
type Result struct {
	Settings string `json:"settings"` // as given, or in canonical form
	Export   string `json:"export"`   // the line of a shell that puts them into force
	// Needs says what it takes to use the settings; empty if what wrote the file
	// takes them. After is when they can be used: now, after_upgrade, or never on
	// this device.
	Needs string `json:"needs"`
	After string `json:"after"`
	// Recorded: the settings and the calls are those of the recording.
	Recorded bool `json:"recorded"`
	// EmptyCache is when empty_cache() is called; nil if as recorded.
	EmptyCache *string `json:"empty_cache"`
	// Change is how the program was changed, a kind and its value; nil if it was
	// not.
	Change *string `json:"change"`

	Limit        *uint64 `json:"limit_bytes"` // nil: none
	DeviceMemory *uint64 `json:"device_memory_bytes"`

	Fails bool     `json:"fails"` // a request failed
	First *Failure `json:"first_failure"`

	// StartReleased is what was cached before the first event and had to be
	// released there because the limit or the device has less than was reserved.
	StartReleased uint64 `json:"start_released_bytes"`

	PeakReserved    uint64          `json:"peak_reserved_bytes"`
	PeakReservedAt  timeline.Moment `json:"peak_reserved_at"`
	PeakActive      uint64          `json:"peak_active_bytes"`
	PeakActiveAt    timeline.Moment `json:"peak_active_at"`
	PeakAllocated   uint64          `json:"peak_allocated_bytes"`
	PeakAllocatedAt timeline.Moment `json:"peak_allocated_at"`
	PeakRequested   uint64          `json:"peak_requested_bytes"`
	PeakRequestedAt timeline.Moment `json:"peak_requested_at"`
	// Fragmentation is 1 - peak allocated / peak reserved; nil if nothing was reserved.
	Fragmentation *float64 `json:"fragmentation"`

	Retries      int64 `json:"num_alloc_retries"`
	OOMs         int64 `json:"num_ooms"`
	DeviceAllocs int64 `json:"num_device_alloc"` // as PyTorch counts: mappings too
	DeviceFrees  int64 `json:"num_device_free"`
	Maps         int64 `json:"maps"`
	Unmaps       int64 `json:"unmaps"`
	// DriverMS estimates how long the driver was busy giving and taking memory.
	DriverMS float64 `json:"estimated_driver_ms"`

	Curve *Curve `json:"curve"` // nil unless asked for
}

// Failure is the first request that failed.
type Failure struct {
	timeline.Moment
	Size        uint64           `json:"size_bytes"`    // asked for by the program
	Segment     uint64           `json:"segment_bytes"` // asked of the driver for it
	Stream      uint64           `json:"stream"`
	Reserved    uint64           `json:"reserved_bytes"`
	Allocated   uint64           `json:"allocated_bytes"`
	Unallocated uint64           `json:"unallocated_bytes"` // reserved - allocated
	Active      uint64           `json:"active_bytes"`
	LargestFree uint64           `json:"largest_free_bytes"`
	DeviceFree  *uint64          `json:"device_free_bytes"` // nil if the device has no end
	RecordedToo bool             `json:"recorded_too"`      // it failed in the recording as well
	AtStart     bool             `json:"at_start"`          // no request: what is there at the beginning is too much
	LooksCaught bool             `json:"looks_caught"`
	CaughtBy    *string          `json:"caught_by"`
	Stack       []timeline.Frame `json:"stack"`

	Caught *Caught       `json:"-"` // nil unless LooksCaught
	Site   timeline.Site `json:"-"` // if there is a Stack
}

// Curve is the course of a run in pieces: the highest totals of each, and the
// state at its end.
type Curve struct {
	Event         []int     `json:"event"`
	Time          []*int64  `json:"time_us"`
	Reserved      []uint64  `json:"reserved_bytes"`
	Active        []uint64  `json:"active_bytes"`
	Allocated     []uint64  `json:"allocated_bytes"`
	Requested     []uint64  `json:"requested_bytes"`
	LargestFree   []uint64  `json:"largest_free_bytes"`
	Fragmentation []float64 `json:"fragmentation"`
}

// NewResult describes an outcome of a run's program.
func NewResult(r *run.Checked, o *replay.Outcome) *Result {
	c := &o.Conditions
	high := func(h replay.High) (uint64, timeline.Moment) { return h.Bytes, r.Moments.At(h.Event, h.Time) }
	out := &Result{
		Settings: c.Settings.String(), Limit: bytes(c.Cap()), DeviceMemory: bytes(c.DeviceMemory),
		Fails: o.Fails, Retries: o.Retries, OOMs: o.OOMs, DeviceAllocs: o.DeviceAllocs, DeviceFrees: o.DeviceFrees,
		StartReleased: o.StartReleased, Maps: o.Maps, Unmaps: o.Unmaps, DriverMS: float64(o.DriverTime.Microseconds()) / 1e3,
	}
	out.offer(r.Trace, c.Settings)
	out.PeakReserved, out.PeakReservedAt = high(o.Reserved)
	out.PeakActive, out.PeakActiveAt = high(o.Active)
	out.PeakAllocated, out.PeakAllocatedAt = high(o.Allocated)
	out.PeakRequested, out.PeakRequestedAt = high(o.Requested)
	out.Fragmentation = timeline.PeakFragmentation(out.PeakReserved, out.PeakAllocated)
	if o.First != nil {
		out.First = newFailure(r, o.First, c.DeviceMemory > 0)
	}
	if c.Points > 0 {
		out.Curve = newCurve(o.Curve)
	}
	return out
}

// setChange says how the program was changed.
func (r *Result) setChange(c *Change) {
	if c == nil {
		return
	}
	name := c.Name()
	r.Change = &name
	if c.Kind == ChangeNoCache {
		r.Settings, r.Export = "", "export PYTORCH_NO_CUDA_MEMORY_CACHING=1"
	}
}

func newFailure(r *run.Checked, f *replay.Failure, finite bool) *Failure {
	out := &Failure{
		Moment: r.Moments.At(f.Event, f.Time), Size: f.Requested, Segment: f.Segment, Stream: f.Stream, Reserved: f.Reserved,
		Allocated: f.Allocated, Unallocated: f.Reserved - min(f.Reserved, f.Allocated), Active: f.Active, LargestFree: f.LargestFree, RecordedToo: f.RecordedToo, AtStart: f.AtStart,
		Stack: timeline.Frames(r.Trace, f.Stack),
	}
	out.Site, _ = timeline.SiteOf(r.Trace, f.Stack)
	if finite {
		out.DeviceFree = &f.DeviceFree
	}
	if f.RecordedToo {
		out.Caught = WasCaught(r.Trace, f.Event)
	}
	if out.Caught == nil {
		out.Caught = LooksCaught(out.Stack)
	}
	if out.Caught != nil {
		out.LooksCaught, out.CaughtBy = true, &out.Caught.By
	}
	return out
}

func newCurve(points []replay.Point) *Curve {
	n := len(points)
	c := &Curve{
		make([]int, n), make([]*int64, n), make([]uint64, n), make([]uint64, n), make([]uint64, n),
		make([]uint64, n), make([]uint64, n), make([]float64, n),
	}
	for i := range points {
		p := &points[i]
		c.Event[i], c.Reserved[i], c.Active[i], c.Allocated[i], c.Requested[i] = p.Event, p.Reserved, p.Active, p.Allocated, p.Requested
		c.LargestFree[i], c.Fragmentation[i] = p.LargestFree, p.Fragmentation()
		if p.Time != trace.NoTime {
			c.Time[i] = &p.Time
		}
	}
	return c
}

// bytes is nil for a bound that is not there.
func bytes(n uint64) *uint64 {
	if n == 0 {
		return nil
	}
	return &n
}
