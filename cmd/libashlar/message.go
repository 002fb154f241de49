package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// outOfMemory is the text of a failed request: PyTorch's numbers and what
// follows from the state of the allocator. The first time it also writes the
// snapshot that oom_snapshot asks for.
func (d *device) outOfMemory(e *alloc.OutOfMemoryError) string {
	text := e.Numbers()
	if !e.TooLarge {
		text += " " + diagnosis(e, d.a.Shortage(e))
	}
	if path := d.oomSnapshot(); path != "" {
		if err := d.lib.writeSnapshot(path, -1); err != nil {
			return text + " No snapshot was written: " + err.Error() + "."
		}
		return text + " A snapshot was written to " + path + "."
	}
	return text
}

// oomSnapshot is where to write a snapshot, once for each path.
func (d *device) oomSnapshot() string {
	l := d.lib
	l.mu.Lock()
	defer l.mu.Unlock()
	path := l.cfg.own.oomSnapshot
	if path == "" {
		return ""
	}
	path = strings.NewReplacer("%p", strconv.Itoa(os.Getpid()), "%d", strconv.Itoa(d.n)).Replace(path)
	if l.gone[path] {
		return ""
	}
	l.gone[path] = true
	return path
}

// diagnosis says in a sentence or two why a request failed. All of it is
// arithmetic on the numbers of that moment.
func diagnosis(e *alloc.OutOfMemoryError, s alloc.Shortage) string {
	var b strings.Builder
	room, whose := e.DeviceFree+e.Reserved, "can be had on the device"
	if e.Limited && e.Limit < room {
		room, whose = e.Limit, "are allowed"
	}
	need := e.Allocated + e.Rounded
	fmt.Fprintf(&b, "Ashlar: what is in use (%s) and the request (%s) ", units.Size(e.Allocated), units.Size(e.Rounded))
	if need > room {
		fmt.Fprintf(&b, "need %s more than the %s that %s, however it is laid out.", units.Size(need-room), units.Size(room), whose)
		if room == e.Limit && e.Limited && need <= e.DeviceFree+e.Reserved {
			fmt.Fprintf(&b, " The device itself could give %s: the limit is what stops it (set_per_process_memory_fraction).", units.Size(e.DeviceFree+e.Reserved))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "would fit into the %s that %s", units.Size(room), whose)
	if s.Free() == 0 && s.Waiting == 0 {
		fmt.Fprintf(&b, ", but not with segments of this size: it takes one of %s.", units.Size(e.Segment))
		return b.String()
	}
	fmt.Fprintf(&b, "; %s is free but cannot serve it: %s.", units.Size(s.Free()), strings.Join(obstacles(s), ", "))
	if s.Waiting > 0 {
		fmt.Fprintf(&b, " %s more was freed but is still in use on other streams.", units.Size(s.Waiting))
	}
	if s.Routed {
		b.WriteString(" Nothing could be given back to the device, because a graph is being captured or a pool is in use.")
	}
	if !s.Expandable && s.Usable > 0 {
		b.WriteString(" With expandable_segments:True free pieces need not lie side by side.")
	}
	return b.String()
}

// obstacles lists where the free memory is.
func obstacles(s alloc.Shortage) []string {
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
