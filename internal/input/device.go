package input

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Device names a device of a file.
type Device struct {
	Number int  // -1 for the one that ran out of memory, else the busiest
	Host   bool // page-locked host memory instead
}

// AnyDevice leaves the choice to [Pick].
var AnyDevice = Device{Number: -1}

// Given reports whether d names a device, or host memory.
func (d Device) Given() bool { return d.Host || d.Number >= 0 }

// Covers reports whether d may be meant by what is about a device, -1 if it
// does not say which.
func (d Device) Covers(device int) bool { return d.Number < 0 || device < 0 || device == d.Number }

// Pick returns the trace that d names. If there was a choice, why says in words
// how it was made. The error is a *[NoMemoryError] or a *[NoHostError] if the
// file has nothing there.
func Pick(f *snapshot.File, d Device) (t *trace.Trace, why string, err error) {
	if d.Host {
		if f.Host == nil {
			return nil, "", &NoHostError{f.Name}
		}
		return f.Host, "", nil
	}
	t, why, err = f.Pick(d.Number)
	if err == nil && !hasContent(t) {
		return nil, "", &NoMemoryError{f.Name, d.Number}
	}
	return t, why, err
}

// Replayable is [Pick] for a trace whose events are to be replayed.
func Replayable(f *snapshot.File, d Device) (t *trace.Trace, why string, err error) {
	t, why, err = Pick(f, d)
	switch {
	case err != nil:
		return nil, "", err
	case t.Host:
		return nil, "", fmt.Errorf("%s: host memory has another allocator, which cannot be replayed; choose a device", f.Name)
	case t.Platform == trace.Profiler:
		return nil, "", fmt.Errorf("%s was made by profile_plot, not by an allocator, so there is nothing to replay: record with torch.cuda.memory._record_memory_history()", f.Name)
	case t.Events.Len() == 0:
		if f.Truncated != nil {
			return nil, "", fmt.Errorf("%s ends before its events, so there is nothing to replay: copy it again, whole", f.Name)
		}
		return nil, "", fmt.Errorf("%s has no events, so there is nothing to replay: record with torch.cuda.memory._record_memory_history()", f.Name)
	}
	return t, why, nil
}

// WhyNoEvents says why a file has no events.
func WhyNoEvents(f *snapshot.File) string {
	if f.Truncated != nil {
		return "the file ends before them"
	}
	return "recording was off"
}

// Devices lists the devices of a file that have events or segments.
func Devices(f *snapshot.File) []*trace.Trace {
	var out []*trace.Trace
	for _, t := range f.Traces {
		if hasContent(t) {
			out = append(out, t)
		}
	}
	return out
}

func hasContent(t *trace.Trace) bool { return t.Events.Len() > 0 || len(t.Segments) > 0 }

// NoMemoryError says that a file lists a device, but nothing about it.
type NoMemoryError struct {
	Name   string
	Device int
}

func (e *NoMemoryError) Error() string {
	return fmt.Sprintf("%s has no memory on device %d", e.Name, e.Device)
}

// NoHostError says that a file has no trace of host memory.
type NoHostError struct{ Name string }

func (e *NoHostError) Error() string { return e.Name + " has no host memory" }

// OtherDeviceError says that a text is about other devices only.
type OtherDeviceError struct {
	Name   string
	What   string // that it lacks; empty for all
	Device int
}

func (e *OtherDeviceError) Error() string {
	what := "nothing"
	if e.What != "" {
		what = "no " + e.What
	}
	return fmt.Sprintf("%s has %s about device %d", e.Name, what, e.Device)
}
