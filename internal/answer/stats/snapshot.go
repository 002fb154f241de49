package stats

import (
	"context"
	"time"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Snapshot is what a memory snapshot tells about one device.
type Snapshot struct {
	Format        string     `json:"format"`
	Compression   *string    `json:"compression"`
	FileBytes     *int64     `json:"file_bytes"`
	UnpackedBytes int64      `json:"unpacked_bytes"`
	Writer        *string    `json:"writer"`
	Truncated     *Truncated `json:"truncated"`

	Device       *int     `json:"device"`
	Host         bool     `json:"host"`
	DeviceReason *string  `json:"device_reason"`
	Devices      []Device `json:"devices"`

	Events      int                  `json:"events"`
	Actions     map[string]int       `json:"actions"`
	FirstTime   *int64               `json:"first_time_us"`
	LastTime    *int64               `json:"last_time_us"`
	Span        *int64               `json:"span_us"`
	Steps       *Steps               `json:"steps"`
	Annotations []timeline.NameCount `json:"annotations"`
	Streams     []uint64             `json:"streams"`
	Settings    Settings             `json:"settings"`

	Memory        Memory        `json:"memory"`
	Segments      []Group       `json:"segments"`
	Fragmentation Fragmentation `json:"fragmentation"`
	OOMs          []OOM         `json:"oom_events"`
	Replay        *Replay       `json:"replay"`
	Missing       []Missing     `json:"missing"`
	Holders       []Holder      `json:"top_stacks"`
	HolderCount   int           `json:"stack_count"`
}

// Truncated tells how far a file goes that ends early.
type Truncated struct {
	ReadBytes int64  `json:"read_bytes"`
	Where     string `json:"where"`
}

// Device is the brief form for files with several.
type Device struct {
	Device         *int   `json:"device"`
	Host           bool   `json:"host"`
	Chosen         bool   `json:"chosen"`
	Events         int    `json:"events"`
	OOMs           int    `json:"oom_events"`
	Segments       int    `json:"segments"`
	ReservedBytes  uint64 `json:"reserved_bytes"`
	AllocatedBytes uint64 `json:"allocated_bytes"`
}

// Steps are the steps of the program, as its annotations tell.
type Steps struct {
	Annotation string `json:"annotation"`
	Complete   int    `json:"complete"`
}

// Replay says how well a replay of the trace matched it.
type Replay struct {
	Identical         bool     `json:"identical"`
	Events            int      `json:"events"`
	IdenticalEvents   int      `json:"identical_events"`
	SegmentsIdentical bool     `json:"segments_identical"`
	Start             string   `json:"start"`
	Notes             []string `json:"notes"`
}

// Missing is something that the file does not tell.
type Missing struct {
	What string `json:"what"`
	Text string `json:"text"`
}

// Options say what is known beside the file and bound the work.
type Options struct {
	Device    input.Device
	FileBytes int64 // 0 if not known
	Writer    string
	Progress  func(done, total int) // of the replay
	// Observed is what [Observe] found in the trace; nil has it replayed here.
	Observed *verify.Verified
}

// maxReplay is the number of events above which a trace is not replayed: it
// takes memory, and half a minute would be too long for a summary.
const maxReplay = 5_000_000

// topStacks is how many call stacks are listed.
const topStacks = 10

// collector gathers the facts about one trace.
type collector struct {
	file    *snapshot.File
	t       *trace.Trace
	line    *timeline.Timeline
	peaks   *timeline.Peaks
	program *timeline.Program
	state   *timeline.State
	seen    *verify.Verified
	out     *Snapshot
}

// NewSnapshot collects the facts of a snapshot.
func NewSnapshot(ctx context.Context, f *snapshot.File, o Options) (*Snapshot, error) {
	t, why, err := input.Pick(f, o.Device)
	if err != nil {
		return nil, err
	}
	c := &collector{file: f, t: t, out: &Snapshot{
		Format: f.Format, UnpackedBytes: f.Bytes, Host: t.Host, Compression: text(f.Compression),
		Writer: text(o.Writer), DeviceReason: text(why), Device: deviceOf(t), Events: t.Events.Len(), Streams: streams(t),
		Annotations: []timeline.NameCount{}, Segments: []Group{}, OOMs: []OOM{}, Missing: []Missing{}, Holders: []Holder{},
	}}
	if o.FileBytes > 0 {
		c.out.FileBytes = &o.FileBytes
	}
	if f.Truncated != nil {
		c.out.Truncated = &Truncated{f.Truncated.ReadBytes, f.Truncated.Where}
	}
	c.devices()
	if err := c.follow(ctx, o); err != nil {
		return nil, err
	}
	c.course()
	c.memory()
	c.segments()
	c.ooms()
	c.holders()
	c.out.Settings = settingsOf(t)
	c.missing()
	return c.out, nil
}

// Observe replays a trace as it is done for the facts of a snapshot. The result
// is nil for a trace that is not replayed: one without events, one of host
// memory, or one that is too long.
func Observe(ctx context.Context, t *trace.Trace, progress func(done, total int)) (*verify.Verified, error) {
	if n := t.Events.Len(); n == 0 || n > maxReplay || t.Host {
		return nil, nil
	}
	return verify.Run(ctx, t, verify.Options{Progress: progress})
}

// follow replays the trace if that can help, and walks through it.
func (c *collector) follow(ctx context.Context, o Options) error {
	seen, err := o.Observed, error(nil)
	if seen == nil {
		seen, err = Observe(ctx, c.t, o.Progress)
	}
	if seen != nil || err != nil {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			c.miss("replay", "the events cannot be replayed: %v", err)
		default:
			c.seen = seen
			r := seen.Result
			c.out.Replay = &Replay{
				Identical: r.Identical, Events: r.Events, IdenticalEvents: r.IdenticalEvents,
				SegmentsIdentical: r.SegmentsIdentical, Start: r.Start, Notes: append([]string{}, r.Notes...),
			}
		}
	}
	known := timeline.Options{}
	if c.seen != nil {
		known = timeline.Options{Start: c.seen.Start, Sizes: c.seen.Sizes}
	}
	c.line = timeline.New(c.t, known)
	c.peaks = c.line.Peaks()
	c.program = timeline.NewProgram(c.t)
	c.state = timeline.NewState(c.t)
	return ctx.Err()
}

// devices lists all devices of the file.
func (c *collector) devices() {
	traces := c.file.Traces
	if c.file.Host != nil {
		traces = append(traces[:len(traces):len(traces)], c.file.Host)
	}
	for _, t := range traces {
		if t.Events.Len() == 0 && len(t.Segments) == 0 {
			continue // processes see devices that they do not use
		}
		s := timeline.NewState(t)
		c.out.Devices = append(c.out.Devices, Device{
			Device: deviceOf(t), Host: t.Host, Chosen: t == c.t, Events: t.Events.Len(), OOMs: countOOMs(t),
			Segments: s.Segments, ReservedBytes: s.Reserved, AllocatedBytes: s.Allocated,
		})
	}
}

// course tells what the program did and when.
func (c *collector) course() {
	c.out.Actions = c.peaks.Actions
	c.out.Annotations = append(c.out.Annotations, c.program.Names()...)
	if c.peaks.First != trace.NoTime {
		first, last := c.peaks.First, c.peaks.End
		span := last - first
		c.out.FirstTime, c.out.LastTime, c.out.Span = &first, &last, &span
	}
	if len(c.program.Steps) > 0 {
		c.out.Steps = &Steps{Annotation: c.program.StepName, Complete: c.program.Complete()}
	}
}
