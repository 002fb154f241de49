package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

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

	addrs []uint64 // it is about
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

const (
	eventsShown = 4 // identical events shown before a difference
	blocksShown = 2 // blocks shown on either side of an address
)

// surroundings describes where the run stands: the last identical events, how
// much memory is held, and the blocks at the addresses in question.
func (v *verifier) surroundings(addrs ...uint64) []string {
	return surroundings(v.run.a, v.run.dev, recorded.List(v.rec.Trace), v.events, addrs)
}

func surroundings(a *alloc.Allocator, dev *recorded.Driver, events recorded.Events, n int, addrs []uint64) []string {
	var out []string
	for i := max(0, n-eventsShown); i < n; i++ {
		out = append(out, fmt.Sprintf("event %d: %s", i, events.At(i)))
	}
	stats := a.Stats()
	line := fmt.Sprintf("after the operation: reserved %d bytes, allocated %d, active %d",
		stats.ReservedBytes.All.Current, stats.AllocatedBytes.All.Current, stats.ActiveBytes.All.Current)
	if limit, ok := a.Limit(); ok {
		line += fmt.Sprintf(", limit %d", limit)
	}
	out = append(out, line)
	if r := dev.Refusal(); r != "" {
		out = append(out, "the recorded device refused: "+r)
	}
	segments := a.Segments()
	slices.Sort(addrs)
	for _, at := range slices.Compact(addrs) {
		if at != 0 {
			out = append(out, around(segments, at)...)
		}
	}
	return out
}

// around describes the blocks next to an address.
func around(segments []alloc.Segment, addr uint64) []string {
	for _, s := range segments {
		if addr < s.Address || addr-s.Address >= s.TotalSize {
			continue
		}
		out := []string{fmt.Sprintf("%#x is in the %s segment %#x of %d bytes, stream %d, pool %v:", addr, s.Type(), s.Address, s.TotalSize, s.Stream, s.Pool)}
		at := slices.IndexFunc(s.Blocks, func(b alloc.Block) bool { return addr-b.Address < b.Size })
		for _, b := range s.Blocks[max(0, at-blocksShown):min(len(s.Blocks), at+blocksShown+1)] {
			out = append(out, fmt.Sprintf("  %#x %s, size %d, requested %d", b.Address, b.State, b.Size, b.RequestedSize))
		}
		return out
	}
	return []string{fmt.Sprintf("%#x is in no segment", addr)}
}

// addressOf is the address an event is about; an oom has none.
func addressOf(action string, addr uint64) uint64 {
	if action == recorded.OOM {
		return 0
	}
	return addr
}
