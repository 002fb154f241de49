package playground

// Answer is what an experiment looks like after one of its steps.
type Answer struct {
	Version int    `json:"version"`
	Device  Device `json:"device"`
	Steps   []Step `json:"steps"`
	At      int    `json:"at"` // the number of steps done at the moment shown
	Moment  Moment `json:"moment"`
}

// Device is what the experiment begins with.
type Device struct {
	Line       string  `json:"line"`
	TotalBytes uint64  `json:"total_bytes"`
	LimitBytes *uint64 `json:"limit_bytes"`
	Settings   string  `json:"settings"` // all that differs from the defaults
}

// The outcomes of a step that are worth a mark in the list.
const (
	OutcomeHit = "hit" // the cache served the request
	OutcomeNew = "new" // the driver had to give memory
	OutcomeOOM = "oom" // the request failed
)

// Step is one step with the sums after it.
type Step struct {
	Line           int    `json:"line"` // position of its line, from 0
	Text           string `json:"text"`
	Chapter        string `json:"chapter"`
	Outcome        string `json:"outcome"`
	ReservedBytes  uint64 `json:"reserved_bytes"`
	AllocatedBytes uint64 `json:"allocated_bytes"`
	ActiveBytes    uint64 `json:"active_bytes"`
}

// Sentence is a rule that was applied, in words.
type Sentence struct {
	Rule string `json:"rule"` // stable
	Name string `json:"name"`
	Text string `json:"text"`
}

// Moment is the state after a step, and why it is so.
type Moment struct {
	Sentences []Sentence `json:"sentences"`
	Events    []string   `json:"events"`  // as the engine emits them, in bytes
	Message   string     `json:"message"` // PyTorch's out-of-memory message, if there is one

	Settings         string  `json:"settings"`
	LimitBytes       *uint64 `json:"limit_bytes"`
	ReservedBytes    uint64  `json:"reserved_bytes"`
	AllocatedBytes   uint64  `json:"allocated_bytes"`
	PendingBytes     uint64  `json:"pending_bytes"`
	RequestedBytes   uint64  `json:"requested_bytes"`
	FreeBytes        uint64  `json:"free_bytes"`
	FreeBlocks       int     `json:"free_blocks"`
	LargestFreeBytes uint64  `json:"largest_free_bytes"`
	ReleasableBytes  uint64  `json:"releasable_bytes"` // what empty_cache would give back
	StrandedBytes    uint64  `json:"stranded_bytes"`   // free, but beside blocks in use
	Fragmentation    float64 `json:"fragmentation"`    // (reserved - allocated) / reserved
	External         float64 `json:"external"`         // 1 - largest free block / free

	Requests        int `json:"requests"`
	Hits            int `json:"hits"`
	ChapterRequests int `json:"chapter_requests"`
	ChapterHits     int `json:"chapter_hits"`

	DriverAllocs int64 `json:"driver_allocs"` // segments got and mappings made
	DriverFrees  int64 `json:"driver_frees"`
	DriverCostUs int64 `json:"driver_cost_us"` // an estimate, see package sim
	Retries      int64 `json:"num_alloc_retries"`
	OOMs         int64 `json:"num_ooms"`

	Segments []Segment `json:"segments"`
	Blocks   []Block   `json:"blocks"`
	Tenants  []Tenant  `json:"tenants"` // empty without tenants
	Touched  *Touched  `json:"touched"`
	NextName string    `json:"next_name"` // one that no line uses
}

// Tenant is what a tenant has and is given.
type Tenant struct {
	Name           string `json:"name"`
	ReservedBytes  uint64 `json:"reserved_bytes"`
	GuaranteeBytes uint64 `json:"guarantee_bytes"`
	CeilingBytes   uint64 `json:"ceiling_bytes"` // 0: none
}

// Touched is where the last step did something: the block that it handed out,
// or the free block that came out of a free.
type Touched struct {
	Address uint64 `json:"address"`
	Size    uint64 `json:"size_bytes"`
}

// The states of a block in a segment, as in api/segments of package view.
const (
	stateFree = iota
	stateAllocated
	statePending
	stateUnmapped
)

// Segment is memory got from the driver, in the form of api/segments: of an
// expandable segment one entry is one reservation.
type Segment struct {
	Name       string     `json:"name"`
	Address    uint64     `json:"address"`
	Size       uint64     `json:"size_bytes"`
	Span       uint64     `json:"span_bytes"`
	Stream     uint64     `json:"stream"`
	Pool       [2]uint64  `json:"pool"`
	Type       string     `json:"type"`
	Expandable bool       `json:"expandable"`
	Tenant     string     `json:"tenant"` // whose it is; empty without tenants
	Blocks     [][5]int64 `json:"blocks"` // offset, size, state, position in the list of blocks or -1, requested
}

// Block is a block that is in use, or was freed and is pending.
type Block struct {
	Name      string   `json:"name"`
	Address   uint64   `json:"address"`
	Segment   string   `json:"segment"`
	Offset    uint64   `json:"offset_bytes"`
	Size      uint64   `json:"size_bytes"`
	Requested uint64   `json:"requested_bytes"`
	Stream    uint64   `json:"stream"`
	Pending   bool     `json:"pending"`
	Uses      []uint64 `json:"uses"` // other streams recorded on it
}
