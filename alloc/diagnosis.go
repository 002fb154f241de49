package alloc

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// Diagnose explains in a sentence or two why a request failed: how much more it
// needed, or where the unusable free memory is. Like [Allocator.Shortage], on
// which it is based, call it right after the failure, or from a hook. The text is
// for people and may change.
func (a *Allocator) Diagnose(e *OutOfMemoryError) string { return e.Diagnosis(a.Shortage(e)) }

// Diagnosis is [Allocator.Diagnose] for a given state. It computes only with the
// numbers of the failure.
func (e *OutOfMemoryError) Diagnosis(s Shortage) string {
	if e.TooLarge {
		return fmt.Sprintf("no device has the %s that were asked for.", units.Size(e.Requested))
	}
	var b strings.Builder
	device := e.DeviceFree + e.Reserved // available if all of it were free
	available, whose := device, "can be had on the device"
	limited := e.Limited && e.Limit < device
	if limited {
		available, whose = e.Limit, "are allowed"
	}
	need := e.Allocated + e.Rounded
	fmt.Fprintf(&b, "what is in use (%s) and the request (%s) ", units.Size(e.Allocated), units.Size(e.Rounded))
	if need > available {
		fmt.Fprintf(&b, "need %s more than the %s that %s, however it is laid out.", units.Size(need-available), units.Size(available), whose)
		if limited && need <= device {
			fmt.Fprintf(&b, " The device itself could give %s: the limit is what stops it (per_process_memory_fraction).", units.Size(device))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "would fit into the %s that %s", units.Size(available), whose)
	if s.Free() == 0 && s.Waiting == 0 {
		fmt.Fprintf(&b, ", but not with segments of this size: it takes one of %s.", units.Size(e.Segment))
		return b.String()
	}
	more := ""
	if s.Free() > 0 {
		fmt.Fprintf(&b, "; %s is free but cannot serve it: %s", units.Size(s.Free()), strings.Join(s.obstacles(), ", "))
		more = "more "
	}
	b.WriteString(".")
	if s.Waiting > 0 {
		fmt.Fprintf(&b, " %s %swas freed but is still in use on other streams.", units.Size(s.Waiting), more)
	}
	if s.Routed {
		b.WriteString(" Nothing could be given back to the device, because a graph is being captured or a pool is in use.")
	}
	if s.ExpandableServes {
		b.WriteString(" With expandable_segments:True free pieces need not lie side by side.")
	}
	return b.String()
}

// obstacles lists where the free memory is.
func (s Shortage) obstacles() []string {
	var out []string
	add := func(bytes uint64, text string) {
		if bytes > 0 {
			out = append(out, units.Size(bytes)+" "+text)
		}
	}
	add(s.Usable, "in pieces of at most "+units.Size(s.Largest))
	add(s.Streams, "belongs to other streams")
	add(s.Kinds, "lies in the pool for requests of another size")
	add(s.Private, "lies in pools that the request may not use")
	return out
}
