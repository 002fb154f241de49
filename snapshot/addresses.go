package snapshot

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// addressBits is how long addresses of programs are at most.
const addressBits = 57

// roundsAll is the first release that rounds every size to a multiple of 512
// bytes. Before it, a division of 1 in roundup_power2_divisions left sizes as they
// were, and the addresses after them.
var roundsAll = pytorch.Of(2, 4)

// oddAddress returns what says why PyTorch's allocator gives no such address;
// empty if it may.
func oddAddress(t *trace.Trace) func(addr uint64) string {
	unaligned := fmt.Sprintf("it is no multiple of %d bytes", alloc.MinBlock)
	if t.Writer.Has(roundsAll-1) || t.Writer.Before(roundsAll) {
		switch {
		case !t.Settings.Known:
			unaligned += ", unless roundup_power2_divisions had a 1"
		case slices.Contains(t.Settings.Parsed.RoundupPower2Divisions[:], 1):
			unaligned = ""
		}
	}
	return func(addr uint64) string {
		switch {
		case addr == 0:
			return "it is 0"
		case addr>>addressBits != 0:
			return fmt.Sprintf("it has more than %d bits", addressBits)
		case addr%alloc.MinBlock != 0:
			return unaligned
		}
		return ""
	}
}

// usualAddress reports whether an allocator of any PyTorch may give an address.
func usualAddress(addr uint64) bool {
	return addr != 0 && addr>>addressBits == 0 && addr%alloc.MinBlock == 0
}

// checkAddresses warns of addresses that no allocator of PyTorch gives: the file
// was made or changed by something else.
func (f *File) checkAddresses(t *trace.Trace) {
	first, n, odd := "", 0, oddAddress(t)
	look := func(addr uint64, what func() string) {
		why := odd(addr)
		if why == "" {
			return
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s at %#x: %s", what(), addr, why)
		}
	}
	for i := range t.Segments {
		look(t.Segments[i].Address, func() string { return fmt.Sprintf("segment %d", i) })
	}
	for i := range t.Events.Len() {
		if action := t.Events.Action.At(i); action < alloc.ActionOOM && !usualAddress(t.Events.Addr.At(i)) {
			look(t.Events.Addr.At(i), func() string { return fmt.Sprintf("event %d, %v", i, action) })
		}
	}
	switch {
	case n == 1:
		f.warn("device %d has an address that no allocator of PyTorch gives: %s", t.Device, first)
	case n > 1:
		f.warn("device %d has %d addresses that no allocator of PyTorch gives; the first is of %s", t.Device, n, first)
	}
}
