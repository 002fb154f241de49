package policies

import (
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// Kinds of policies.
const (
	Online = "online" // knows only what has happened
	Oracle = "oracle" // knows the future
	Bound  = "bound"  // no allocator
	Model  = "model"  // estimates, in a range
)

// Answer is what the strategies do.
type Answer struct {
	SelfCheck    *whatif.SelfCheck `json:"self_check"` // nil for a placement problem
	Limit        whatif.Limit      `json:"limit"`
	DeviceMemory whatif.Memory     `json:"device_memory"`
	OnOOM        string            `json:"on_oom"` // whatif.OnOOMDie or OnOOMSkip
	// Interrupted: the context ended before all was done. NotRun are the policies
	// without a result.
	Interrupted bool      `json:"interrupted"`
	NotRun      []string  `json:"not_run"`
	Notes       []string  `json:"notes"`
	LowerBound  uint64    `json:"lower_bound_bytes"` // the peak of live bytes
	Results     []*Result `json:"results"`
}

// Result is what one policy does. What a policy does not have is nil.
type Result struct {
	Policy     string         `json:"policy"`
	Kind       string         `json:"kind"`
	Parameters map[string]any `json:"parameters"`

	Fails bool     `json:"fails"` // a request failed, or what is needed exceeds the limit
	First *Failure `json:"first_failure"`

	PeakReserved     *uint64          `json:"peak_reserved_bytes"`
	PeakReservedAt   *timeline.Moment `json:"peak_reserved_at"`
	ReservedOverLive *float64         `json:"reserved_over_live"`
	// SmallestLimit is the least limit under which no request fails, to 2 MiB.
	SmallestLimit *uint64 `json:"smallest_limit_bytes"`

	DeviceAllocs *int64 `json:"num_device_alloc"`
	DeviceFrees  *int64 `json:"num_device_free"`
	// DriverMS estimates how long the driver was busy giving and taking memory.
	DriverMS       *float64 `json:"estimated_driver_ms"`
	CallsPerSecond *float64 `json:"calls_per_second"` // of this replay, on this machine

	InternalWaste *uint64 `json:"internal_waste_bytes"`
	ExternalWaste *uint64 `json:"external_waste_bytes"`

	Curve  *Curve   `json:"curve"` // nil unless asked for
	WhyNot *string  `json:"why_not"`
	Notes  []string `json:"notes"`
	// Sizes are those of a device with managed memory.
	Sizes []Size `json:"sizes,omitempty"`
}

// Failure is the first request that failed.
type Failure struct {
	timeline.Moment
	Size        uint64           `json:"size_bytes"`
	Stream      uint64           `json:"stream"`
	Reserved    uint64           `json:"reserved_bytes"`
	Given       uint64           `json:"given_bytes"`
	RecordedToo bool             `json:"recorded_too"` // it failed in the recording as well
	AtStart     bool             `json:"at_start"`     // what is there at the beginning is too much
	Stack       []timeline.Frame `json:"stack"`

	Site timeline.Site `json:"-"` // if there is a Stack
}

// Curve is the course of a run in pieces: the highest totals of each.
type Curve struct {
	Event     []int    `json:"event"`
	Time      []*int64 `json:"time_us"`
	Reserved  []uint64 `json:"reserved_bytes"`
	Given     []uint64 `json:"given_bytes"`
	Requested []uint64 `json:"requested_bytes"`
}

// Size is what a device of some size moves between itself and the host.
type Size struct {
	DeviceBytes uint64  `json:"device_bytes"`
	MovedLow    uint64  `json:"moved_low_bytes"`
	MovedHigh   uint64  `json:"moved_high_bytes"`
	AddedLowMS  float64 `json:"added_low_ms"`
	AddedHighMS float64 `json:"added_high_ms"`
}

// Document is what ashlar policies --json prints.
type Document struct {
	answer.Subject
	*Answer
}

// NewDocument says what an answer is about.
func NewDocument(s answer.Subject, a *Answer) *Document { return &Document{s, a} }
