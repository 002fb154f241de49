package view

import (
	"context"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// run is one device of one file, with the indices that answers are put together
// from. It does not change once it is made, but for the caches.
type run struct {
	input  *input.Input
	trace  *trace.Trace
	device input.Device // as the commands would name it
	reason string       // why they would choose it, if there is a choice
	chosen bool

	line    *timeline.Timeline
	lives   *timeline.Lives
	course  *timeline.Course
	layout  *timeline.Layout
	clock   *timeline.Clock
	peaks   *timeline.Peaks
	program *timeline.Program
	steps   *findings.Steps
	// categories has for each life the position of its category in
	// findings.Categories and, above categoryBits, of its confidence.
	categories []uint8
	replayed   *replay.Result // nil if the trace was not replayed

	checked  *replay.Program // its calls, once they were asked for; see calls
	checking chan struct{}   // held while they are read

	seen      *verify.Verified // until the documents have it
	documents *documents
	ctx       context.Context // ends when the run is forgotten
	end       context.CancelFunc

	streams   map[uint64]uint32 // positions in the list of streams
	streamIDs []uint64

	// Made when first asked for:
	overview func() *overview
	colours  func() []uint32 // of stacks
	own      func() []bool   // whether a frame is of the user's program

	caches sync.Mutex
	stacks cache[string, []bool]  // which stacks match an expression
	lists  cache[string, []int32] // events that pass a filter
}

const categoryBits = 4

// confidences are the degrees, as categories have them.
var confidences = []findings.Confidence{findings.Guess, findings.Likely, findings.Certain}

// newRun goes through a trace a few times and keeps what answers need.
func newRun(ctx context.Context, in *input.Input, t *trace.Trace, d input.Device) (*run, error) {
	seen, err := stats.Observe(ctx, t, nil)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		seen = nil // the stats document says why
	}
	line := timeline.New(t, lineOptions(seen))
	lives := timeline.NewLives(line)
	r := &run{
		input: in, trace: t, device: d, seen: seen, line: line, lives: lives,
		course: timeline.NewCourse(line, lives), layout: timeline.NewLayout(line, lives), clock: timeline.NewClock(t),
		peaks: line.Peaks(), program: timeline.NewProgram(t), streams: map[uint64]uint32{},
		checking: make(chan struct{}, 1),
	}
	if seen != nil {
		r.replayed = seen.Result
	}
	for _, s := range t.Events.Streams {
		r.stream(s)
	}
	for i := range t.Segments {
		r.stream(t.Segments[i].Stream)
	}
	for i := range line.Start.Segments {
		r.stream(line.Start.Segments[i].Stream)
	}
	r.categorise(findings.New(t, findings.Options{Start: line.Start, Sizes: lineOptions(seen).Sizes}))
	r.overview = sync.OnceValue(r.newOverview)
	r.colours = sync.OnceValue(r.stackColours)
	r.own = sync.OnceValue(r.ownFrames)
	return r, ctx.Err()
}

// lineOptions is what a replay knows beside the trace. It may be nil.
func lineOptions(v *verify.Verified) timeline.Options {
	if v == nil {
		return timeline.Options{}
	}
	return timeline.Options{Start: v.Start, Sizes: v.Sizes}
}

// stream adds a stream to the list.
func (r *run) stream(s uint64) {
	if _, ok := r.streams[s]; !ok {
		r.streams[s] = uint32(len(r.streamIDs))
		r.streamIDs = append(r.streamIDs, s)
	}
}

// categorise keeps what the lives are for.
func (r *run) categorise(a *findings.Analysis) {
	r.steps = a.Steps
	at := map[findings.Category]uint8{}
	for i, c := range findings.Categories() {
		at[c] = uint8(i)
	}
	sure := map[findings.Confidence]uint8{}
	for i, c := range confidences {
		sure[c] = uint8(i)
	}
	r.categories = make([]uint8, r.lives.Len())
	for i := range r.categories {
		c, confidence := a.Life(r.lives, i)
		r.categories[i] = at[c] | sure[confidence]<<categoryBits
	}
}

// category returns what a life is for.
func (r *run) category(life int) (findings.Category, findings.Confidence) {
	c := r.categories[life]
	return findings.Categories()[c&(1<<categoryBits-1)], confidences[c>>categoryBits]
}

func (r *run) events() int { return r.trace.Events.Len() }

// listing is how the page lists the run.
func (r *run) listing(id int, dropped bool) listing {
	l := listing{
		ID: id, File: r.input.Name, Host: r.trace.Host, Chosen: r.chosen, State: stateReady, Events: r.events(),
		Read: r.input.Bytes, Size: r.input.Bytes, Dropped: dropped, Warnings: []string{},
	}
	if !r.trace.Host {
		l.Device = &r.trace.Device
	}
	if t := r.input.Snapshot.Truncated; t != nil {
		l.Warnings = append(l.Warnings, t.String())
	}
	l.Warnings = append(l.Warnings, r.input.Snapshot.Warnings...)
	return l
}

// ownFrames tells for each frame whether it is of the user's own program.
func (r *run) ownFrames() []bool {
	own := make([]bool, r.trace.Stacks.NumFrames())
	for i := range own {
		own[i] = r.frame(trace.FrameID(i)).User()
	}
	return own
}

func (r *run) frame(id trace.FrameID) timeline.Frame {
	f := r.trace.Stacks.Frame(id)
	return timeline.Frame{Name: r.trace.Strings.Text(f.Name), Filename: r.trace.Strings.Text(f.File), Line: f.Line}
}

// cache keeps the values that were asked for last.
type cache[K comparable, V any] struct {
	keys   []K // the latest last
	values map[K]V
}

// cached is how many values a cache keeps: a person goes back and forth between
// a few filters.
const cached = 6

// get returns a value, making it if it is not there. The lock must be held.
func (c *cache[K, V]) get(key K, make func() (V, error)) (V, error) {
	for i, k := range c.keys {
		if k == key {
			c.keys = append(append(c.keys[:i:i], c.keys[i+1:]...), key)
			return c.values[key], nil
		}
	}
	v, err := make()
	if err != nil {
		return v, err
	}
	if c.values == nil {
		c.values = map[K]V{}
	}
	if len(c.keys) == cached {
		delete(c.values, c.keys[0])
		c.keys = c.keys[1:]
	}
	c.keys = append(c.keys, key)
	c.values[key] = v
	return v, nil
}
