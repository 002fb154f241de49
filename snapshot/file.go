package snapshot

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// File is a snapshot.
type File struct {
	Name        string
	Format      string // "pickle" or "json"
	Compression string // "gzip", "zstd" or ""
	Page        bool   // it is in an HTML page of PyTorch's memory viewer
	Bytes       int64  // read, decompressed

	// Traces has one trace for each device that the file lists a trace or a
	// segment of, in the order of their numbers. They share one table of texts
	// and one of stacks. Annotations and settings are those of the file.
	Traces []*trace.Trace
	// Host is the trace of page-locked host memory, nil if the file has none.
	Host *trace.Trace

	Truncated *Truncation // nil for a complete file
	Warnings  []string
	// Contradictions are what the file says that cannot be true together; they are
	// among the warnings, too.
	Contradictions []string
	Extra          trace.Extra // further fields of the file

	lists    int // of device_traces
	trailing int // bytes behind the snapshot
}

// Truncation says how far a file goes that ends early.
type Truncation struct {
	ReadBytes  int64  // decompressed
	TotalBytes int64  // that the file should have; 0 if unknown
	Where      string // what was being read, in words
}

func (t *Truncation) String() string {
	return fmt.Sprintf("the file ends early, after %d bytes, %s", t.ReadBytes, t.Where)
}

// Pick returns the trace of a device. Device -1 stands for the most
// interesting one: the one with an oom event, else the one with most events,
// else the one with most memory. why says how it was chosen if there was a
// choice.
func (f *File) Pick(device int) (t *trace.Trace, why string, err error) {
	if device >= 0 {
		for _, t := range f.Traces {
			if t.Device == device {
				return t, "", nil
			}
		}
		return nil, "", fmt.Errorf("%s has no device %d: %s", f.Name, device, f.devices())
	}
	var best candidate
	n := 0
	for _, t := range f.Traces {
		c := candidate{t, ooms(t), t.Events.Len(), reserved(t)}
		if c.events > 0 || c.reserved > 0 {
			n++
		}
		if best.Trace == nil || c.beats(best) {
			best = c
		}
	}
	switch {
	case best.Trace == nil && f.Host != nil:
		return f.Host, "the file has host memory only", nil
	case best.Trace == nil:
		return nil, "", fmt.Errorf("%s has no device", f.Name)
	case n < 2:
		return best.Trace, "", nil
	case best.ooms > 0:
		why = "it ran out of memory"
	case best.events > 0:
		why = fmt.Sprintf("it has most events, %d", best.events)
	default:
		why = "it has most memory"
	}
	return best.Trace, fmt.Sprintf("device %d of %d with content, because %s", best.Device, n, why), nil
}

// candidate is a trace that Pick considers.
type candidate struct {
	*trace.Trace
	ooms, events int
	reserved     uint64
}

func (c candidate) beats(o candidate) bool {
	switch {
	case (c.ooms > 0) != (o.ooms > 0):
		return c.ooms > 0
	case c.events != o.events:
		return c.events > o.events
	}
	return c.reserved > o.reserved
}

func ooms(t *trace.Trace) int {
	n := 0
	for i := range t.Events.Len() {
		if t.Events.Action.At(i) == alloc.ActionOOM {
			n++
		}
	}
	return n
}

func reserved(t *trace.Trace) uint64 {
	sum := uint64(0)
	for i := range t.Segments {
		sum += t.Segments[i].TotalSize
	}
	return sum
}

// devices lists what there is.
func (f *File) devices() string {
	switch n := len(f.Traces); n {
	case 0:
		return "it has none"
	case 1:
		return fmt.Sprintf("it has device %d only", f.Traces[0].Device)
	default:
		return fmt.Sprintf("it has devices %d to %d", f.Traces[0].Device, f.Traces[n-1].Device)
	}
}
