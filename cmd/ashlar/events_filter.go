package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// filterFlags are the flags of events that choose events, as written.
type filterFlags struct {
	from, to         string
	action, stack    string
	minSize, maxSize string
	addr, stream     string
	pool             string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "first event, as its `N|TIME`")
	flags.StringVar(&f.to, "to", "", "last event, as its `N|TIME`")
	flags.StringVar(&f.action, "action", "", "only these `NAMES`: alloc, free_requested, free_completed, oom, ...")
	flags.StringVar(&f.stack, "stack", "", "only where a frame of the call stack matches `REGEX`")
	flags.StringVar(&f.minSize, "min-size", "", "only of this `SIZE` or more")
	flags.StringVar(&f.maxSize, "max-size", "", "only of this `SIZE` or less")
	flags.StringVar(&f.addr, "addr", "", "only what this `ADDRESS` lies in, 0x7f... or decimal")
	flags.StringVar(&f.stream, "stream", "", "only of the stream with this `HANDLE`, decimal or 0x...")
	flags.StringVar(&f.pool, "pool", "", "only of this pool, as its id `A,B`; 0,0 is the default pool")
}

// filter is what the flags say.
type filter struct {
	from, to     place
	actions      []string
	stack        *regexp.Regexp
	minimum      uint64
	maximum      uint64
	addr, stream *uint64
	pool         *alloc.PoolID

	// Of the trace it is bound to:
	start  int64 // time of the first event
	action [256]bool
	match  []int8 // stack -> 0 not looked at, 1 matches, -1 does not
	frames []int8
	trace  *trace.Trace
}

// place is an event by its number or its time since the first one.
type place struct {
	set    bool
	timed  bool
	number int
	since  time.Duration
}

func (f *filterFlags) parse() (*filter, error) {
	out := &filter{maximum: math.MaxUint64}
	var err error
	if out.from, err = parsePlace("--from", f.from); err != nil {
		return nil, err
	}
	if out.to, err = parsePlace("--to", f.to); err != nil {
		return nil, err
	}
	if f.action != "" {
		out.actions = strings.Split(f.action, ",")
	}
	if f.stack != "" {
		if out.stack, err = regexp.Compile(f.stack); err != nil {
			return nil, fmt.Errorf("--stack: %w", err)
		}
	}
	for _, s := range []struct {
		flag, text string
		to         *uint64
	}{{"--min-size", f.minSize, &out.minimum}, {"--max-size", f.maxSize, &out.maximum}} {
		if s.text == "" {
			continue
		}
		if *s.to, err = units.Parse(s.text); err != nil {
			return nil, fmt.Errorf("%s: %w", s.flag, err)
		}
	}
	if out.addr, err = parseHandle("--addr", f.addr); err != nil {
		return nil, err
	}
	if out.stream, err = parseHandle("--stream", f.stream); err != nil {
		return nil, err
	}
	out.pool, err = parsePool(f.pool)
	return out, err
}

func parsePlace(flag, text string) (place, error) {
	if text == "" {
		return place{}, nil
	}
	if n, err := strconv.Atoi(strings.ReplaceAll(text, ",", "")); err == nil && n >= 0 {
		return place{set: true, number: n}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return place{}, fmt.Errorf("%s %q: write the number of an event, or a time since the first one such as 250ms or 1.5s", flag, text)
	}
	return place{set: true, timed: true, since: d}, nil
}

// parseHandle reads an address or the handle of a stream, which PyTorch writes
// with or without sign.
func parseHandle(flag, text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		signed, signedErr := strconv.ParseInt(text, 0, 64)
		if signedErr != nil {
			return nil, fmt.Errorf("%s %q: write a number, decimal or with 0x", flag, text)
		}
		n = uint64(signed)
	}
	return &n, nil
}

func parsePool(text string) (*alloc.PoolID, error) {
	if text == "" {
		return nil, nil
	}
	a, b, ok := strings.Cut(strings.Trim(text, "()"), ",")
	first, err1 := strconv.ParseUint(strings.TrimSpace(a), 10, 64)
	second, err2 := strconv.ParseUint(strings.TrimSpace(b), 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return nil, fmt.Errorf("--pool %q: write its two numbers, such as 0,1", text)
	}
	return &alloc.PoolID{First: first, Second: second}, nil
}

// actionGroups are names for several actions.
var actionGroups = map[string][]string{
	"free":    {alloc.ActionFreeRequested.String(), alloc.ActionFreeCompleted.String()},
	"segment": {alloc.ActionSegmentAlloc.String(), alloc.ActionSegmentFree.String(), alloc.ActionSegmentMap.String(), alloc.ActionSegmentUnmap.String()},
}

// bind prepares the filter for a trace.
func (f *filter) bind(t *trace.Trace) error {
	f.trace = t
	f.start = startTime(t)
	if (f.from.timed || f.to.timed) && f.start == trace.NoTime && t.Events.Len() > 0 {
		return errors.New("the events have no times; give --from and --to as numbers of events")
	}
	if f.stack != nil {
		f.match = make([]int8, t.Stacks.Len())
		f.frames = make([]int8, t.Stacks.NumFrames())
	}
	return f.bindActions(t)
}

func (f *filter) bindActions(t *trace.Trace) error {
	known := map[string]trace.Action{}
	for a := alloc.ActionAlloc; a <= alloc.ActionSnapshot; a++ {
		known[a.String()] = a
	}
	for i, name := range t.Events.Others {
		known[name] = trace.FirstOther + trace.Action(i)
	}
	for _, name := range f.actions {
		names := []string{strings.TrimSpace(name)}
		if group, ok := actionGroups[names[0]]; ok {
			names = group
		}
		for _, n := range names {
			a, ok := known[n]
			if !ok {
				all := make([]string, 0, len(known))
				for n := range known {
					all = append(all, n)
				}
				slices.Sort(all)
				return fmt.Errorf("--action %q: there is no such action; there are %s, and free and segment for all of their kind", n, strings.Join(all, ", "))
			}
			f.action[a] = true
		}
	}
	return nil
}

// startTime is the time that moments are counted from.
func startTime(t *trace.Trace) int64 {
	first := int64(trace.NoTime)
	for i := range t.Events.Len() {
		if at := t.Events.Time.At(i); at != trace.NoTime && (first == trace.NoTime || at < first) {
			first = at
		}
	}
	return first
}

// past tells that no further event can pass.
func (f *filter) past(c *timeline.Cursor) bool {
	return f.to.set && !f.to.timed && c.Index > f.to.number
}

func (f *filter) passes(c *timeline.Cursor) bool {
	e := &c.Event
	switch {
	case f.from.set && f.before(c, f.from), f.to.set && f.to.timed && f.after(e, f.to):
		return false
	case f.actions != nil && !f.action[e.Action]:
		return false
	case e.Size < f.minimum || e.Size > f.maximum:
		return false
	case f.stream != nil && e.Stream != *f.stream:
		return false
	case f.addr != nil && !holds(e, *f.addr):
		return false
	case f.pool != nil:
		if pool, ok := c.Pool(); !ok || pool != *f.pool {
			return false
		}
	}
	return f.stack == nil || f.stackMatches(e.Stack)
}

// before tells that an event lies before a place.
func (f *filter) before(c *timeline.Cursor, p place) bool {
	if p.timed {
		return c.Event.Time == trace.NoTime || c.Event.Time-f.start < p.since.Microseconds()
	}
	return c.Index < p.number
}

func (f *filter) after(e *trace.Event, p place) bool {
	return e.Time == trace.NoTime || e.Time-f.start > p.since.Microseconds()
}

// holds tells whether an address lies in the memory of an event.
func holds(e *trace.Event, addr uint64) bool {
	if e.Action == alloc.ActionOOM || e.Action == alloc.ActionSnapshot {
		return false
	}
	return addr == e.Addr || addr > e.Addr && addr-e.Addr < e.Size
}

// stackMatches looks at each stack and each frame once.
func (f *filter) stackMatches(id trace.StackID) bool {
	if f.match[id] == 0 {
		f.match[id] = -1
		for _, frame := range f.trace.Stacks.Frames(id) {
			if f.frameMatches(frame) {
				f.match[id] = 1
				break
			}
		}
	}
	return f.match[id] > 0
}

func (f *filter) frameMatches(id trace.FrameID) bool {
	if f.frames[id] == 0 {
		frame := f.trace.Stacks.Frame(id)
		text := fmt.Sprintf("%s:%d %s", f.trace.Strings.Text(frame.File), frame.Line, f.trace.Strings.Text(frame.Name))
		f.frames[id] = -1
		if f.stack.MatchString(text) {
			f.frames[id] = 1
		}
	}
	return f.frames[id] > 0
}
