package verify

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

const (
	eventsShown = 4 // identical events shown before a difference
	blocksShown = 2 // blocks shown on either side of an address
)

// Surroundings describes where a replay stands after n identical events: the
// last of them, how much memory is held, and the blocks at the addresses in
// question.
func Surroundings(a *alloc.Allocator, dev *recorded.Driver, events recorded.Events, n int, addrs []uint64) []string {
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

// AddressOf returns the address that an event is about; an oom has none.
func AddressOf(action alloc.Action, addr uint64) uint64 {
	if action == alloc.ActionOOM {
		return 0
	}
	return addr
}
