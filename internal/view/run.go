package view

import (
	"context"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
)

// pageRun is a run of the page, with the indices that answers are built from. It
// does not change once it is made, except for the caches.
type pageRun struct {
	input  *input.Input
	loaded *run.Run
	trace  *trace.Trace
	device input.Device // as the commands would name it
	reason string       // why they would choose it, if there is a choice
	chosen bool

	line    *timeline.Timeline
	lives   *timeline.Lifetimes
	course  *timeline.TotalsIndex
	layout  *timeline.Layout
	clock   *timeline.Clock
	peaks   *timeline.Peaks
	program *timeline.Annotations
	steps   *findings.Steps
	// categories has for each life the position of its category in
	// findings.Categories and, above categoryBits, of its confidence.
	categories []uint8
	replayed   *replay.Result // nil if the trace was not replayed

	documents *documents
	ctx       context.Context // ends when the run is forgotten
	end       context.CancelFunc

	streams   map[uint64]uint32 // positions in the list of streams
	streamIDs []uint64

	// Made when first asked for:
	overview func() *overview
	colours  func() []uint32 // of stacks
	own      func() []bool   // whether a frame is of the user's program

	caches   sync.Mutex
	stacks   cache[string, []bool]     // which stacks match an expression
	lists    cache[string, *rowList]   // events that pass a filter
	filtered cache[string, *matchList] // blocks that pass a filter
}

const categoryBits = 4

// confidences are the degrees, as categories have them.
var confidences = []findings.Confidence{findings.Guess, findings.Likely, findings.Certain}

// newRun reads a trace a few times and keeps what answers need.
func newRun(ctx context.Context, in *input.Input, t *trace.Trace, d input.Device) (*pageRun, error) {
	loaded := run.New(t, recorder.Read(in.Snapshot.Extra))
	x, err := loaded.Indices(ctx)
	if err != nil {
		return nil, err
	}
	r := &pageRun{
		input: in, trace: t, device: d, loaded: loaded, line: x.Timeline, lives: x.Lifetimes, course: x.Totals, layout: x.Layout,
		clock: x.Clock, peaks: x.Peaks, program: loaded.Annotations(), streams: map[uint64]uint32{},
	}
	if seen, err := loaded.Replayed(ctx); err == nil && seen != nil { // else the stats document says why
		r.replayed = seen.Result
	}
	for _, s := range t.Events.Streams {
		r.stream(s)
	}
	for i := range t.Segments {
		r.stream(t.Segments[i].Stream)
	}
	for i := range x.Timeline.Start.Segments {
		r.stream(x.Timeline.Start.Segments[i].Stream)
	}
	r.categorise(x.Analysis)
	r.overview = sync.OnceValue(r.newOverview)
	r.colours = sync.OnceValue(r.stackColours)
	r.own = sync.OnceValue(r.ownFrames)
	return r, ctx.Err()
}

// stream adds a stream to the list.
func (r *pageRun) stream(s uint64) {
	if _, ok := r.streams[s]; !ok {
		r.streams[s] = uint32(len(r.streamIDs))
		r.streamIDs = append(r.streamIDs, s)
	}
}

// categorise keeps what the lives are for.
func (r *pageRun) categorise(a *findings.Analysis) {
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
		c, confidence := a.CategoryOf(r.lives, i)
		r.categories[i] = at[c] | sure[confidence]<<categoryBits
	}
}

// category returns what a life is for.
func (r *pageRun) category(life int) (findings.Category, findings.Confidence) {
	c := r.categories[life]
	return findings.Categories()[c&(1<<categoryBits-1)], confidences[c>>categoryBits]
}

func (r *pageRun) events() int { return r.trace.Events.Len() }

// listing is how the page lists the run.
func (r *pageRun) listing(id int, dropped bool) listing {
	l := listing{
		ID: id, File: r.input.Name, Host: r.trace.Host, Chosen: r.chosen, State: stateReady, Events: r.events(),
		Read: r.input.Bytes, Size: r.input.Bytes, Dropped: dropped, Warnings: []string{},
	}
	if !r.trace.Host {
		l.Device = &r.trace.Device
	}
	if f := r.loaded.Facts; f != nil {
		l.Rank = f.Rank
	}
	if n := len(r.peaks.OOMs); n > 0 {
		last := r.peaks.OOMs[n-1].Index
		l.OOMs, l.LastOOM, l.WentOn = n, &last, timeline.WentOn(r.trace, last)
	}
	if t := r.input.Snapshot.Truncated; t != nil {
		l.Warnings = append(l.Warnings, t.String())
	}
	l.Warnings = append(l.Warnings, r.input.Snapshot.Warnings...)
	return l
}

// ownFrames reports for each frame whether it is of the user's own program.
func (r *pageRun) ownFrames() []bool {
	own := make([]bool, r.trace.Stacks.NumFrames())
	for i := range own {
		own[i] = r.frame(trace.FrameID(i)).User()
	}
	return own
}

func (r *pageRun) frame(id trace.FrameID) timeline.Frame {
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

// get returns a value, and makes it if it is missing. The lock must be held.
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
