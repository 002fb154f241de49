package replay

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// Result says how far a replay and its recording agree.
type Result struct {
	File            string
	Kind            string // what the file is: "recording" or "snapshot"
	Identical       bool
	Events          int // in the recording
	IdenticalEvents int // from the first one on
	Checkpoints     int // in the recording
	Segments        int // in the recording, at its end
	First           *Difference
	Writer          pytorch.Range    // the versions that may have written the file
	Version         pytorch.Version  // whose rules the replay followed
	Stats           map[string]int64 // the engine's statistics where the run ended
	Waited          []int            // of a recording: the reading that was taken, see recorded.Config

	// Of a snapshot only:
	SegmentsIdentical bool
	Start             string   // start.Recorded, start.Rebuilt or start.Unknown
	Limit             *Limit   // what the file shows of the cap on reserved memory
	CollectLimit      uint64   // a limit under which garbage is collected as recorded; 0 if none had to be assumed
	Notes             []string // what was assumed or inferred
	Warnings          []string // what is wrong with the file; among the notes too
	Contradictions    []string // of the file with itself; among the warnings too
}

// Limit is what a trace shows of the cap on reserved memory: it was at
// least Min, and below Max if a request was refused. The cap itself is in no
// snapshot.
type Limit struct {
	Min uint64
	Max uint64 // 0: nothing was ever refused, or the device refused it
}

// The kinds of a [Difference].
const (
	DiffEvent     = "event"     // another event, or one too many or too few
	DiffAddress   = "address"   // an allocation returned another address, or failed where it should not
	DiffPool      = "pool"      // a MemPool got another id
	DiffStatistic = "statistic" // a value of memory_stats() at a checkpoint
	DiffSegment   = "segment"   // a segment or block of the final snapshot
	DiffMessage   = "message"   // the text of an out-of-memory error
	DiffRefused   = "refused"   // the engine refused an operation that PyTorch performed
	DiffUndefined = "undefined" // from here on PyTorch itself is undefined
	DiffException = "exception" // PyTorch itself raised an error
)

// Difference is the first point at which a replay and its recording part.
type Difference struct {
	Kind          string   `json:"kind"`
	Event         int      `json:"event"`     // position in the trace: this many events were identical
	Operation     int      `json:"operation"` // position in the list of operations
	OperationText string   `json:"operation_text"`
	What          string   `json:"what"`
	Expected      string   `json:"expected"` // what the recording says
	Got           string   `json:"got"`      // what the engine did
	State         []string `json:"state"`    // the surroundings, a line each
}

// String describes the difference in several lines.
func (d *Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "operation %d (%s), event %d: %s\n", d.Operation, d.OperationText, d.Event, d.What)
	if d.Expected != "" {
		fmt.Fprintf(&b, "  expected: %s\n", d.Expected)
	}
	if d.Got != "" {
		fmt.Fprintf(&b, "  got:      %s\n", d.Got)
	}
	for _, s := range d.State {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	return b.String()
}
