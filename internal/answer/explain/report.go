package explain

import (
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// The triggers, in the order in which they are tried.
const (
	Capacity      = "capacity"
	External      = "outside"
	Pools         = "pools"
	Pending       = "pending"
	Streams       = "streams"
	Setting       = "setting"
	Fragmentation = "fragmentation"
	NearlyFull    = "nearly_full" // of a text alone: the request fits, another one like it would not
	None          = "none"
	Unknown       = "unknown" // a request failed, and the input does not say why
)

// How sure a trigger, or a cause, is.
const (
	Certain = "certain" // computed from a replay that reproduces the file, or by arithmetic that leaves no other
	Likely  = "likely"  // the evidence has gaps that hardly matter
	Open    = "open"    // the evidence leaves another one possible
)

// Report is the explanation of a failed request, or of a healthy run.
type Report struct {
	// Warning is what is to be said before everything else; empty if nothing is.
	Warning string `json:"warning"`
	// Cause is why the job does not run, Line the line of the user's code that it
	// shows at; CauseText says it in a sentence.
	Cause           string          `json:"cause"`
	CauseText       string          `json:"cause_text"`
	CauseConfidence string          `json:"cause_confidence"`
	Line            *timeline.Frame `json:"line"`
	// Where says where that is: the line, or the backward pass after it.
	Where string `json:"where"`
	// Source is the text of the line, if its file was to be opened and is there.
	Source string `json:"source_line"`
	// Prognosis is how the run would have gone on; nil if that is not known.
	Prognosis *Prognosis `json:"prognosis"`
	// Trigger is why the request failed just then.
	Trigger    string `json:"trigger"`
	Summary    string `json:"summary"`
	Confidence string `json:"confidence"`
	// Alternatives are the other triggers that the evidence leaves open.
	Alternatives []Alternative `json:"alternatives"`
	// BreakEven is the limit that decides between the triggers of an open case:
	// below it the memory is too little, from it on something else is wrong.
	BreakEven *uint64 `json:"break_even_limit_bytes"`
	Capped    bool    `json:"capped"` // a per-process limit refused while the device had room
	Limit     Limit   `json:"limit"`

	SelfCheck *whatif.SelfCheck `json:"self_check"` // nil without a snapshot that has events
	Failure   *Failure          `json:"failure"`    // nil if nothing failed
	Evidence  Evidence          `json:"evidence"`
	Pinners   []Segment         `json:"pinners"`
	Holders   []Holder          `json:"holders"`      // live at the failure, else at the peak
	AtPeak    []Holder          `json:"peak_holders"` // live at the peak of allocated bytes
	ByLine    []LineHolder      `json:"lines"`        // live bytes by line of the user's code
	ByModule  []ModuleHolder    `json:"modules"`
	ByKind    []CategoryHolder  `json:"categories"`
	Findings  []Finding         `json:"findings"`
	Fixes     []Fix             `json:"fixes"`
	// AfterUpgrade are settings that help but that the PyTorch of the recording
	// does not know.
	AfterUpgrade []Fix   `json:"after_upgrade"`
	Health       *Health `json:"health"` // of a run in which nothing failed
	// Arithmetic goes through the numbers of a message or a dump.
	Arithmetic []string `json:"arithmetic"`
	Log        *Log     `json:"log"` // of a text with a traceback, or with several messages or dumps
	// Record are the lines with which the next run shows more; empty if there
	// is a snapshot.
	Record []string `json:"record"`
	Notes  []string `json:"notes"`
}

// shows names the user's line of a call stack as the one that the cause shows at.
func (r *Report) shows(frames []timeline.Frame, site timeline.Site) {
	if len(frames) > 0 && site.HasUser {
		r.Line, r.Where = &site.User, site.User.String()
	}
}

// Alternative is another trigger, and what would make it the right one.
type Alternative struct {
	Verdict string `json:"verdict"`
	When    string `json:"when"`
}

// Limit is what is known of the cap on reserved memory.
type Limit struct {
	Min    *uint64 `json:"min_bytes"`
	Max    *uint64 `json:"max_bytes"` // nil: no cap shows
	Source string  `json:"source"`    // given, recorded, message, inferred, none
}

// Failure is the request that is explained.
type Failure struct {
	timeline.Moment
	Stream uint64           `json:"stream"`
	Pool   *[2]uint64       `json:"pool"` // nil: the default pool
	OOMs   int              `json:"ooms"` // failed requests in the file
	Caught bool             `json:"survived"`
	Frames []timeline.Frame `json:"frames"`
	Site   timeline.Site    `json:"-"` // if there are Frames
}

// Evidence holds the numbers of the moment of the failure, after PyTorch had
// flushed its cache; without a failure those of the end. Nil is unknown.
type Evidence struct {
	Live          *uint64 `json:"live_bytes"` // allocated blocks
	Request       *uint64 `json:"request_bytes"`
	Rounded       *uint64 `json:"rounded_bytes"`
	Segment       *uint64 `json:"segment_bytes"` // asked of the driver
	Free          *uint64 `json:"free_bytes"`    // cached, in all pools
	LargestFree   *uint64 `json:"largest_free_bytes"`
	FreeUsable    *uint64 `json:"free_usable_bytes"` // of the request's pool and stream
	LargestUsable *uint64 `json:"largest_usable_bytes"`
	FreeStreams   *uint64 `json:"free_other_streams_bytes"`
	FreePools     *uint64 `json:"free_pools_bytes"` // in private pools
	Pending       *uint64 `json:"pending_bytes"`
	Reserved      *uint64 `json:"reserved_bytes"`
	DeviceFree    *uint64 `json:"device_free_bytes"`
	DeviceTotal   *uint64 `json:"device_total_bytes"`
	External      *uint64 `json:"outside_bytes"`   // total - free - reserved
	Available     *uint64 `json:"available_bytes"` // what there is: the limit, or what the device had for PyTorch
	Gap           *uint64 `json:"gap_bytes"`       // live + rounded beyond available; nil if it fits
}

// Segment is memory that live blocks keep from release.
type Segment struct {
	Address uint64  `json:"segment"`
	Size    uint64  `json:"size_bytes"`
	Stuck   uint64  `json:"stuck_bytes"` // free in it
	Live    uint64  `json:"live_bytes"`
	Count   int     `json:"live_blocks"`
	Blocks  []Block `json:"blocks"` // the live ones, by stack, the largest first
}

// Block is live memory of one stack in a segment.
type Block struct {
	Bytes  uint64           `json:"bytes"`
	Count  int              `json:"blocks"`
	Frames []timeline.Frame `json:"stack"`
	Site   timeline.Site    `json:"-"`
}

// Holder is live memory of one stack.
type Holder struct {
	Bytes      uint64           `json:"bytes"`
	Blocks     int              `json:"blocks"`
	Category   string           `json:"category"`
	Confidence string           `json:"category_confidence"`
	Frames     []timeline.Frame `json:"stack"`
	Site       timeline.Site    `json:"-"`
}

// LineHolder is live memory by a line of the user's own code.
type LineHolder struct {
	Bytes  uint64         `json:"bytes"`
	Blocks int            `json:"blocks"`
	Line   timeline.Frame `json:"line"`
}

// ModuleHolder is live memory by the module whose forward made it.
type ModuleHolder struct {
	Bytes  uint64 `json:"bytes"`
	Blocks int    `json:"blocks"`
	Module string `json:"module"`
}

// CategoryHolder is live memory by what it is for.
type CategoryHolder struct {
	Bytes      uint64 `json:"bytes"`
	Blocks     int    `json:"blocks"`
	Category   string `json:"category"`
	Confidence string `json:"confidence"`
}

// The kinds of findings.
const (
	Leak      = "leak"
	Spike     = "spike"
	Transient = "transient"
	Ignored   = "ignored_setting" // a setting that the user believes in is not in force
)

// Finding is something beside the cause that is worth knowing.
type Finding struct {
	Kind         string           `json:"kind"`
	Bytes        uint64           `json:"bytes"`
	BytesPerStep *float64         `json:"bytes_per_step"`
	Spread       *float64         `json:"spread_bytes"`
	Steps        []int            `json:"steps"`
	Detail       string           `json:"detail"`
	Confidence   string           `json:"confidence"`
	Frames       []timeline.Frame `json:"stack"`
	Parts        []Block          `json:"parts"` // further stacks
	Site         timeline.Site    `json:"-"`
}

// The kinds of fixes.
const (
	FixSetting    = "setting"      // a line to export
	FixCode       = "code"         // allocate less, wherever
	FixDetach     = "detach"       // keep numbers, not the graph
	FixNoGrad     = "no_grad"      // evaluate without a graph
	FixDel        = "del"          // drop tensors earlier
	FixCPU        = "cpu"          // keep them on the host
	FixCheckpoint = "checkpoint"   // gradient checkpointing
	FixChunk      = "chunked_loss" // the loss in parts
	FixMicroBatch = "micro_batch"  // smaller batches, more of them
	FixOptimizer  = "optimizer"    // one with less state
	FixHalf       = "half"         // half precision
	FixShape      = "shape"        // mend a bug in a shape
	FixEmptyCache = "empty_cache"
	FixOthers     = "others"   // end other users of the device
	FixOverflow   = "overflow" // libashlar.so, with memory of the host
	FixMemory     = "memory"   // a higher limit, a larger device
)

// Fix is a change and what it would have done to this run.
type Fix struct {
	Kind     string `json:"kind"`
	Settings string `json:"settings,omitempty"`
	Export   string `json:"export,omitempty"`
	// Requires is what it takes to use the settings.
	Requires string `json:"requires,omitempty"`
	// Code shows a change of the program; Line is where.
	Code string          `json:"code,omitempty"`
	Line *timeline.Frame `json:"line,omitempty"`
	// Carries is how far it carries the run; nil if that is not known.
	Carries *prognosis.Carries `json:"carries"`
	// PassesFailure reports whether the failed request is served with it; nil
	// if that cannot be computed.
	PassesFailure *bool `json:"passes_failure"`
	// UntilEvent is how far the recording passes: its number of events if all of it.
	UntilEvent    *int     `json:"until_event"`
	SmallestLimit *uint64  `json:"smallest_limit_bytes"`
	PeakReserved  *uint64  `json:"peak_reserved_bytes"`
	DriverMS      *float64 `json:"estimated_driver_ms"`
	Bytes         *uint64  `json:"bytes"` // of memory: how much more; of code: how much to free
	Detail        string   `json:"detail"`
	// Overflow is what host memory would do; of FixOverflow only.
	Overflow *whatif.Overflow `json:"overflow,omitempty"`
	// Curve has the totals along the run with the changed program, if they were
	// asked for; the events of continued steps follow those of the recording.
	Curve []replay.Point `json:"-"`
}
