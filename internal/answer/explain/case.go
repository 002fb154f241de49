package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// Case gathers what an explanation is made from: a file, and what was given
// beside it. What was added first stays.
type Case struct {
	Input
	Name   string // of the file, or of what there is instead
	Kind   input.Kind
	Device int      // that it is about; -1 if not known
	Reason string   // why that device, if there was a choice
	About  []string // what there is
	// Loaded is the run of the snapshot's device; if nil, it is loaded when the
	// file is added. Progress is called during its replay; it may be nil.
	Loaded   *run.Run
	Progress func(done, total int)
	Notes    []string // what is to be said about that

	warning        string   // what is to be said before everything else
	contradictions []string // of the snapshot with itself
}

// NewCase begins a case about a device, -1 if that is not known.
func NewCase(device int) *Case { return &Case{Device: device} }

// AddMessage takes the message about the device that ended its process, and the
// last error of a library.
func (c *Case) AddMessage(in *input.Input) error {
	var err error
	if len(in.Messages) > 0 || len(in.Refusals) == 0 {
		err = c.addFailed(in)
	}
	if len(in.Refusals) > 0 {
		c.addRefusal(in)
		err = nil
	}
	return err
}

func (c *Case) addFailed(in *input.Input) error {
	failed, all, err := in.Failed(input.Device{Number: c.Device})
	if err != nil {
		return err
	}
	c.Message = failed
	about := "out-of-memory message"
	if failed.Version != "" {
		about += " of PyTorch " + failed.Version
	}
	if failed.Rank >= 0 {
		about += fmt.Sprintf(", rank %d", failed.Rank)
	}
	if failed.Device >= 0 {
		word := "GPU"
		if answer.PlatformOf(failed) == trace.NPU {
			word = trace.NPU
		}
		about += fmt.Sprintf(", %s %d", word, failed.Device)
	}
	if f := newFailures(all, failed); f != nil {
		c.log().Failures = f
		about += ", " + f.text()
	}
	if len(failed.Traceback) > 0 {
		c.log().addTraceback(failed.Traceback)
	}
	c.About = append(c.About, about)
	return nil
}

// log returns what is said of the log, which there is from now on.
func (c *Case) log() *Log {
	if c.Log == nil {
		c.Log = &Log{Frames: []timeline.Frame{}}
	}
	return c.Log
}

// addRefusal takes the last error of a library. Some follow an out-of-memory
// message, which says more; others stand for themselves.
func (c *Case) addRefusal(in *input.Input) {
	r := in.Refusals[len(in.Refusals)-1]
	follows := r.Kind == message.SamplerWarmup || r.Kind == message.NoBatchSize
	if c.Message != nil && !follows {
		if c.Message.Line > r.Line {
			return
		}
		c.note("%s has an out-of-memory message, too, on line %s; the error of %s on line %s comes after it", in.Name, count(c.Message.Line), r.Library, count(r.Line))
		c.Message, c.Log, c.About = nil, nil, nil
	}
	c.Refusal = r
	c.log().Refusal = &r.Kind
	if c.Message == nil && len(r.Traceback) > 0 {
		c.Log.addTraceback(r.Traceback)
	}
	c.About = append(c.About, fmt.Sprintf("error of %s on line %s", r.Library, count(r.Line)))
}

// AddDump takes the last dump of the device of the failure.
func (c *Case) AddDump(in *input.Input) error {
	all, err := in.DumpsOf(input.Device{Number: c.failed()})
	if err != nil {
		return err
	}
	last, n := all[len(all)-1], len(all)
	c.Stats = last
	if t := newTrend(all); t != nil {
		c.log().Trend = t
	}
	about := "dump of memory_stats()"
	if last.Device >= 0 {
		about += fmt.Sprintf(" of device %d", last.Device)
	}
	c.About = append(c.About, about)
	if n > 1 {
		c.note("%s has %s dumps of memory_stats(); the last, on line %s, is used", in.Name, count(n), count(last.Line))
	}
	return nil
}

// failed returns the device of the failure, -1 if not known.
func (c *Case) failed() int {
	if c.Device < 0 && c.Message != nil {
		return c.Message.Device
	}
	return c.Device
}

// AddFile adds what is in a file and nowhere else.
func (c *Case) AddFile(ctx context.Context, in *input.Input) error {
	c.Name, c.Kind = in.Name, in.Kind
	if in.Snapshot != nil {
		return c.addSnapshot(ctx, in.Snapshot)
	}
	if given := c.Message; given != nil && len(in.Messages) > 0 && !slices.ContainsFunc(in.Messages, func(m *message.OOM) bool { return sameNumbers(m, given) }) {
		c.warning = fmt.Sprintf("The message is about another failure than those in %s; it is explained, not they.", in.Name)
	}
	if c.Message == nil && c.Refusal == nil && len(in.Messages)+len(in.Refusals) > 0 {
		// A log of one device may have dumps of another.
		if err := c.AddMessage(in); err != nil && len(in.Dumps) == 0 {
			return err
		}
	}
	if c.Stats == nil && len(in.Dumps) > 0 {
		if err := c.AddDump(in); err != nil && c.Message == nil && c.Refusal == nil {
			return err
		}
	}
	return nil
}

// addSnapshot adds a snapshot and what the recorder wrote into it.
func (c *Case) addSnapshot(ctx context.Context, f *snapshot.File) error {
	c.contradictions, c.Facts = f.Contradictions, recorder.Read(f.Extra)
	t, why, err := c.Pick(f)
	if err != nil {
		return err
	}
	if m := c.Message; m != nil && c.Device < 0 && m.Device >= 0 && t.Device != m.Device {
		c.warning = fmt.Sprintf("The message is about device %d, which is not in %s: it is not used.", m.Device, f.Name)
	}
	c.Device, c.Reason = t.Device, why
	if c.Loaded == nil {
		c.Loaded = run.New(t, c.Facts)
		c.Loaded.Progress = c.Progress
	}
	about := why
	if about == "" {
		about = fmt.Sprintf("device %d", t.Device)
	}
	c.About = append([]string{about, count(t.Events.Len()) + " events"}, c.About...)
	given := c.Message
	c.addRecorded(t.Device)
	if t.Platform != trace.Profiler && (t.Events.Len() > 0 || c.atFailure(t)) {
		if c.Run, err = whatif.Check(ctx, f.Name, c.Loaded); err != nil {
			return err
		}
		c.About = append(c.About, c.pytorch().String())
		if given != nil {
			c.compare(given)
		}
		return nil
	}
	c.About = append(c.About, c.pytorch().String())
	if t.Platform != trace.Profiler { // of which that is said anyway
		c.warning = fmt.Sprintf("There is nothing to replay: %s has no events (%s), only the state when it was written; see ashlar stats.", f.Name, input.WhyNoEvents(f))
	}
	if c.Message == nil && c.Stats == nil {
		c.Stats = stateOf(t)
	} else {
		c.warning += " The message, or the dump, is explained without it."
	}
	return nil
}

// pytorch returns which release the snapshot is of.
func (c *Case) pytorch() replay.PyTorch {
	w := c.Loaded.Trace.Writer
	if c.Run != nil {
		return replay.NewPyTorch(w, c.Run.Program.Version)
	}
	return replay.NewPyTorch(w, w.Assumed())
}

// compare finds out whether the message that was given is about the file's
// failure. If not, the file is explained without it.
func (c *Case) compare(given *message.OOM) {
	if other := OtherFailure(c.Run, given); other != "" {
		c.warning = other
		if lastOOM(c.Run.Trace) >= 0 {
			c.Message = nil
		}
	}
}

// addRecorded adds what the recorder wrote beside the snapshot.
func (c *Case) addRecorded(device int) {
	if c.Facts == nil {
		return
	}
	c.About = append(c.About, "with what python/ashlar.py recorded")
	c.Notes = append(c.Notes, c.Facts.Warnings...)
	if all, err := message.Parse(c.Facts.Message); c.Message == nil && err == nil {
		c.Message = all[len(all)-1]
	}
	if c.Stats == nil {
		c.Stats = c.Facts.MemoryStats[device]
	}
}

// atFailure reports whether the message says that a file without events was
// written at the failure.
func (c *Case) atFailure(t *trace.Trace) bool {
	if c.Message == nil {
		return false
	}
	same, _ := input.SameMoment(t, c.Message)
	return same
}

// stateOf returns the state at the end of a trace, as far as memory_stats()
// would tell it.
func stateOf(t *trace.Trace) *stats.Dump {
	var reserved, allocated, active, requested uint64
	for i := range t.Segments {
		s := &t.Segments[i]
		reserved, allocated, active, requested = reserved+s.TotalSize, allocated+s.AllocatedSize, active+s.ActiveSize, requested+s.RequestedSize
	}
	return stats.FromValues(t.Device, map[string]int64{
		"reserved_bytes.all.current": int64(reserved), "allocated_bytes.all.current": int64(allocated),
		"active_bytes.all.current": int64(active), "requested_bytes.all.current": int64(requested),
	})
}

// Pick chooses the device of a file: the one that was named, else that of the
// message if the file has it.
func (c *Case) Pick(f *snapshot.File) (t *trace.Trace, why string, err error) {
	if m := c.Message; c.Device < 0 && m != nil && m.Device >= 0 {
		if t, _, err := input.Pick(f, input.Device{Number: m.Device}); err == nil {
			return t, "", nil
		}
	}
	t, why, err = input.Pick(f, input.Device{Number: c.Device})
	if err == nil && t.Host {
		return nil, "", fmt.Errorf("%s: host memory has another allocator, which Ashlar does not explain", f.Name)
	}
	return t, why, err
}

// Explain gives the verdict, with what is to be said about the case.
func (c *Case) Explain(ctx context.Context) (r *Report, err error) {
	if c.Run == nil {
		r, err = FromText(c.Input)
	} else if r, err = FromSnapshot(ctx, c.Input); err != nil {
		err = fmt.Errorf("%s: %w", c.Name, err)
	}
	if err != nil {
		return nil, err
	}
	platform := r.Warning
	if c.Loaded != nil {
		platform = replay.NotModelled(c.Loaded.Trace)
	}
	r.Warning = strings.TrimSpace(platform + " " + c.warning)
	r.Notes = append(append([]string{}, c.Notes...), r.Notes...)
	return r, nil
}

func (c *Case) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

func count(n int) string { return units.Count(int64(n)) }
