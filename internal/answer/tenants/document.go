package tenants

import "github.com/ashlar-mem/ashlar/internal/answer/whatif"

// Answer is what the arrangements do, and what ashlar tenants --json prints.
type Answer struct {
	Limit        uint64         `json:"limit_bytes"`
	Clock        string         `json:"clock"`
	OnOOM        string         `json:"on_oom"`
	Tenants      []Tenant       `json:"tenants"`
	PeakLive     uint64         `json:"joint_live_peak_bytes"` // of all runs together, if nothing fails
	Arrangements []*Arrangement `json:"arrangements"`
	Notes        []string       `json:"notes"`
}

// Tenant is a run and its terms.
type Tenant struct {
	Name string `json:"name"`
	File string `json:"file"`
	// Contradictions are what the file says that cannot be true together.
	Contradictions []string         `json:"contradictions"`
	SelfCheck      whatif.SelfCheck `json:"self_check"`
	Settings       string           `json:"settings"`
	Guarantee      uint64           `json:"guarantee_bytes"`
	Ceiling        *uint64          `json:"ceiling_bytes"` // nil: none
	Priority       int              `json:"priority"`
}

// Arrangement is one way to share the GPU.
type Arrangement struct {
	Name  string `json:"arrangement"`
	Fails bool   `json:"fails"` // under the limit a request fails
	// SmallestLimit is the least memory under which no request fails; nil if there
	// is none.
	SmallestLimit *uint64 `json:"smallest_limit_bytes"`
	// IdleMean is how much of SmallestLimit no run has allocated, on average over time.
	IdleMean *uint64   `json:"idle_bytes_mean"`
	Results  []*Result `json:"results"`
}

// Result is what an arrangement does to one run under the limit.
type Result struct {
	Tenant     string `json:"tenant"`
	Requests   int    `json:"requests"`
	Failures   int    `json:"failures"`
	Guaranteed int    `json:"guaranteed_failures"` // of requests within the guarantee
	// PeakReserved is nil where the run has no engine of its own.
	PeakReserved  *uint64 `json:"peak_reserved_bytes"`
	PeakAllocated uint64  `json:"peak_allocated_bytes"`
	Trims         int64   `json:"trims"`        // of its cache, for others
	TrimsCaused   int64   `json:"trims_caused"` // of others' caches, for it
	Lent          uint64  `json:"lent_bytes"`
	Retries       int64   `json:"retries"`
	DriverMS      float64 `json:"estimated_driver_ms"`
	// Share is what the run may have where it is alone, and Profile the MIG instance.
	Share   *uint64 `json:"share_bytes"`
	Profile *string `json:"profile"`
}
