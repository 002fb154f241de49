package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// File is a file and what was found in it.
type File struct {
	Subject
	Name   string
	Device *int   // nil if the file does not say, or for host memory
	Reason string // why this device, if there was a choice
	// Warning is what is not modelled of the device; empty for CUDA.
	Warning        string
	Contradictions []string // of a snapshot, with itself
}

// Choice says what of a file is measured.
type Choice struct {
	Device input.Device
	// Prefer is the device that is taken if Device names none and the file has
	// it; nil for none.
	Prefer *int
	// Program has the calls read too, for a rule that replays them.
	Program bool
	Leaks   bool // has steps found too, and what they leave behind
}

// MeasureFile finds the values of a file.
func MeasureFile(ctx context.Context, in *input.Input, c Choice, progress func(done, total int)) (*File, error) {
	m := &File{Name: in.Name, Contradictions: answer.Contradictions(in.Snapshot)}
	switch in.Kind {
	case input.OOMMessage, input.LibraryError:
		n := messages(in, c.Device)
		if n == 0 {
			return nil, &input.OtherDeviceError{Name: in.Name, Device: c.Device.Number}
		}
		m.Measures, m.NoProgram = MeasureMessages(in.Kind, n), in.Kind.Words()+" has no events: give a snapshot"
		return m, nil
	case input.MemoryStats:
		dump, err := oneDump(in.Dumps, c.Device)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		}
		if dump.Device >= 0 {
			m.Device = &dump.Device
		}
		m.Measures, m.NoProgram = MeasureDump(dump, messages(in, c.Device)), "a memory_stats() dump has no events: give a snapshot"
		return m, nil
	}
	t, why, err := input.Pick(in.Snapshot, c.Device)
	if c.Prefer != nil && !c.Device.Given() {
		if same, _, err := input.Pick(in.Snapshot, input.Device{Number: *c.Prefer}); err == nil {
			t = same
		}
	}
	if err != nil {
		return nil, err
	}
	m.Reason, m.Warning = why, replay.NotModelled(t)
	if !t.Host {
		m.Device = &t.Device
	}
	r := run.New(t, recorder.Read(in.Snapshot.Extra))
	r.Progress = progress
	if m.Measures, err = MeasureRun(ctx, r); err != nil {
		return nil, err
	}
	if c.Leaks {
		if err := m.measureLeak(ctx, r); err != nil {
			return nil, err
		}
	}
	if c.Program {
		return m, m.readProgram(ctx, r)
	}
	return m, nil
}

// messages counts the out-of-memory messages about a device, and the errors of
// libraries that found its memory too small.
func messages(in *input.Input, d input.Device) int {
	n := 0
	for _, m := range in.Messages {
		if d.Covers(m.Device) {
			n++
		}
	}
	for _, r := range in.Refusals {
		if d.Covers(r.Device) {
			n++
		}
	}
	return n
}

// readProgram reads the calls, or notes why there are none.
func (f *File) readProgram(ctx context.Context, r *run.Run) error {
	switch {
	case r.Trace.Host:
		f.NoProgram = "host memory has another allocator, which cannot be replayed"
		return nil
	case r.Events() == 0:
		f.NoProgram = "the file has no events: there is nothing to replay"
		return nil
	}
	var err error
	if f.Run, err = r.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.NoProgram = fmt.Sprintf("the events cannot be replayed: %v", err)
	}
	return nil
}

// SeveralDumpsError says that a file has dumps of several devices.
type SeveralDumpsError struct{ Dumps int }

func (e *SeveralDumpsError) Error() string {
	return fmt.Sprintf("it has %d memory_stats() dumps", e.Dumps)
}

// oneDump returns the only dump of a device.
func oneDump(dumps []*stats.Dump, d input.Device) (*stats.Dump, error) {
	var found []*stats.Dump
	for _, dump := range dumps {
		if d.Covers(dump.Device) {
			found = append(found, dump)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("it has no memory_stats() dump of device %d", d.Number)
	case len(found) == 1:
		return found[0], nil
	case d.Number < 0:
		return nil, &SeveralDumpsError{len(found)}
	}
	return nil, errors.New("it has several memory_stats() dumps of that device: give a file with one")
}
