package snapshot

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// addressBits is how long addresses of programs are at most.
const addressBits = 57

// oddAddress says why no allocator of PyTorch gives an address; empty if one may.
func oddAddress(addr uint64) string {
	switch {
	case addr == 0:
		return "it is 0"
	case addr%alloc.MinBlock != 0:
		return fmt.Sprintf("it is no multiple of %d bytes", alloc.MinBlock)
	case addr>>addressBits != 0:
		return fmt.Sprintf("it has more than %d bits", addressBits)
	}
	return ""
}

// checkAddresses warns of addresses that no allocator of PyTorch gives: the file
// was made or changed by something else.
func (f *File) checkAddresses(t *trace.Trace) {
	first, n := "", 0
	odd := func(addr uint64, what func() string) {
		why := oddAddress(addr)
		if why == "" {
			return
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s at %#x: %s", what(), addr, why)
		}
	}
	for i := range t.Segments {
		odd(t.Segments[i].Address, func() string { return fmt.Sprintf("segment %d", i) })
	}
	for i := range t.Events.Len() {
		if action := t.Events.Action.At(i); action < alloc.ActionOOM {
			odd(t.Events.Addr.At(i), func() string { return fmt.Sprintf("event %d, %v", i, action) })
		}
	}
	switch {
	case n == 1:
		f.warn("device %d has an address that no allocator of PyTorch gives: %s", t.Device, first)
	case n > 1:
		f.warn("device %d has %d addresses that no allocator of PyTorch gives; the first is of %s", t.Device, n, first)
	}
}
