package alloc

import "fmt"

// Action says what an [Event] of the trace is about. The names are those of
// PyTorch's memory snapshots.
type Action uint8

// The actions, with the meaning of Addr and Size in the event (spec 10.4).
const (
	ActionAlloc         Action = iota // block handed out; size as requested by the caller
	ActionFreeRequested               // free called; size as requested
	ActionFreeCompleted               // block back in its pool; size as requested
	ActionSegmentAlloc                // plain segment obtained
	ActionSegmentFree                 // plain segment released
	ActionSegmentMap                  // memory mapped into an expandable segment
	ActionSegmentUnmap                // memory unmapped from an expandable segment
	ActionOOM                         // request failed; Addr is the device's free memory, size is rounded
	ActionSnapshot                    // a snapshot was taken; size is the sum of active blocks
	numActions
)

var actionNames = [numActions]string{
	"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
	"segment_map", "segment_unmap", "oom", "snapshot",
}

func (a Action) String() string {
	if a < numActions {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// ParseAction finds the action with the given name.
func ParseAction(name string) (Action, bool) {
	for a, n := range actionNames {
		if n == name {
			return Action(a), true
		}
	}
	return 0, false
}

// Event is one entry of the allocator's trace.
type Event struct {
	Action Action
	Addr   uint64 // for ActionOOM the device's free memory
	Size   uint64
	Block  uint64 // size of the block that is allocated or freed; 0 in other events
	Stream uint64
	Pool   PoolID
	Time   int64  // nanoseconds since the Unix epoch; 0 without a clock
	Meta   string // text set by SetMetadata
}

func (e Event) String() string {
	if e.Action == ActionOOM {
		return fmt.Sprintf("oom size %d stream %d device_free %d", e.Size, e.Stream, e.Addr)
	}
	return fmt.Sprintf("%s addr %#x size %d stream %d", e.Action, e.Addr, e.Size, e.Stream)
}
