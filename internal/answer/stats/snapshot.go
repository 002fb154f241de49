package stats

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
)

// Snapshot is what a memory snapshot says about one device.
type Snapshot struct {
	Format        string         `json:"format"`
	Compression   *string        `json:"compression"`
	FileBytes     *int64         `json:"file_bytes"`
	UnpackedBytes int64          `json:"unpacked_bytes"`
	Writer        *string        `json:"writer"`
	PyTorch       replay.PyTorch `json:"pytorch"`
	Truncated     *Truncated     `json:"truncated"`
	// Contradictions are what the file says that cannot be true together.
	Contradictions []string `json:"contradictions"`

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
	// Readings judge the statistics of the replay, if it was identical.
	Readings   []Reading `json:"readings"`
	EmptyCache *Released `json:"empty_cache"` // at the end; nil if the file has no segments
	Traffic    *Traffic  `json:"traffic"`     // nil without events

	Replay      *Replay   `json:"replay"`
	Missing     []Missing `json:"missing"`
	Holders     []Holder  `json:"top_stacks"`
	HolderCount int       `json:"stack_count"`
}

// Truncated says how far a file that ends early goes.
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

// Steps are the steps of the program, from its annotations.
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

// Missing is something that the file lacks.
type Missing struct {
	What string `json:"what"`
	Text string `json:"text"`
}

// Options say what is asked for and what is known beside the file.
type Options struct {
	Device    input.Device
	Run       *run.Run // of that device; nil has it loaded
	FileBytes int64    // 0 if not known
	Writer    string
	Progress  func(done, total int) // of the replay, if the run is loaded here
}

// topStacks is how many call stacks are listed.
const topStacks = 10

// collector gathers the facts about one trace.
type collector struct {
	file    *snapshot.File
	trace   *trace.Trace
	line    *timeline.Timeline
	peaks   *timeline.Peaks
	moments *timeline.Moments
	program *timeline.Annotations
	state   *timeline.State
	seen    *verify.Verified
	out     *Snapshot
}

// NewSnapshot collects the facts of one device of a snapshot.
func NewSnapshot(ctx context.Context, f *snapshot.File, o Options) (*Snapshot, error) {
	t, why, err := input.Pick(f, o.Device)
	if err != nil {
		return nil, err
	}
	r := o.Run
	if r == nil {
		r = run.New(t, recorder.Read(f.Extra))
		r.Progress = o.Progress
	}
	c := &collector{file: f, trace: t, out: &Snapshot{
		Format: f.Format, UnpackedBytes: f.Bytes, Host: t.Host, Compression: text(f.Compression),
		Writer: text(o.Writer), DeviceReason: text(why), Device: deviceOf(t), Events: t.Events.Len(), Streams: streams(t),
		PyTorch:        replay.NewPyTorch(t.Writer, t.Writer.Assumed()),
		Contradictions: answer.Contradictions(f),
		Annotations:    []timeline.NameCount{}, Segments: []Group{}, OOMs: []OOM{}, Missing: []Missing{}, Holders: []Holder{}, Readings: []Reading{},
	}}
	if o.FileBytes > 0 {
		c.out.FileBytes = &o.FileBytes
	}
	if f.Truncated != nil {
		c.out.Truncated = &Truncated{f.Truncated.ReadBytes, f.Truncated.Where}
	}
	c.devices()
	if err := c.follow(ctx, r); err != nil {
		return nil, err
	}
	c.course()
	c.memory()
	c.segments()
	c.ooms()
	c.holders()
	c.out.EmptyCache = released(t)
	if err := c.traffic(ctx, r); err != nil {
		return nil, err
	}
	c.out.Settings = settingsOf(t)
	c.missing()
	return c.out, nil
}

// follow replays the trace if that can help, and walks through it.
func (c *collector) follow(ctx context.Context, r *run.Run) error {
	switch seen, err := r.Replayed(ctx); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		c.miss("replay", "the events cannot be replayed: %v", err)
	case seen != nil:
		c.seen = seen
		got := seen.Result
		c.out.PyTorch = replay.NewPyTorch(got.Writer, got.Version)
		c.out.Replay = &Replay{
			Identical: got.Identical, Events: got.Events, IdenticalEvents: got.IdenticalEvents,
			SegmentsIdentical: got.SegmentsIdentical, Start: got.Start, Notes: append([]string{}, got.Notes...),
		}
		if got.Identical {
			c.out.Readings = readings(func(key string) *units.Range {
				n, ok := got.Stats[key]
				if !ok {
					return nil
				}
				r := units.Exactly(uint64(max(n, 0)))
				return &r
			})
		}
	}
	h, err := r.History(ctx)
	if err != nil {
		return err
	}
	c.line, c.peaks, c.moments, c.program = h.Timeline, h.Peaks, h.Moments, r.Annotations()
	c.state = timeline.NewState(c.trace)
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
			Device: deviceOf(t), Host: t.Host, Chosen: t == c.trace, Events: t.Events.Len(), OOMs: countOOMs(t),
			Segments: s.Segments, ReservedBytes: s.Reserved, AllocatedBytes: s.Allocated,
		})
	}
}

// course adds what the program did and when.
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
