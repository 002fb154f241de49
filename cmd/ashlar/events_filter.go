package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// filterFlags are the flags of events that choose events, as written.
type filterFlags struct {
	from, to         string
	action, stack    string
	minSize, maxSize sizeFlag
	addr, stream     string
	pool             string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "first event: its number or time, `N|TIME`")
	flags.StringVar(&f.to, "to", "", "last event: its number or time, `N|TIME`")
	flags.StringVar(&f.action, "action", "", "only these `NAMES`: alloc, free_requested, free_completed, oom, ...")
	flags.StringVar(&f.stack, "stack", "", "only where a frame of the call stack matches `REGEX`")
	flags.Var(&f.minSize, "min-size", "only of this `SIZE` or more")
	flags.Var(&f.maxSize, "max-size", "only of this `SIZE` or less")
	flags.StringVar(&f.addr, "addr", "", "only memory that contains this `ADDRESS`, 0x7f... or decimal")
	flags.StringVar(&f.stream, "stream", "", "only of the stream with this `HANDLE`, decimal or 0x...")
	flags.StringVar(&f.pool, "pool", "", "only of the pool with this id, `A,B`; 0,0 is the default pool")
}

// filter is what the flags say.
type filter struct {
	from, to place
	timeline.Filter

	// Of the trace it is bound to:
	start   int64 // time of the first event
	matcher *timeline.Matcher
}

// place is an event by its number or its time since the first one.
type place struct {
	set    bool
	timed  bool
	number int
	since  time.Duration
}

func (f *filterFlags) parse() (*filter, error) {
	out := &filter{}
	var err error
	if out.from, err = parsePlace("--from", f.from); err != nil {
		return nil, err
	}
	if out.to, err = parsePlace("--to", f.to); err != nil {
		return nil, err
	}
	if f.action != "" {
		out.Actions = strings.Split(f.action, ",")
	}
	if f.stack != "" {
		if out.Stack, err = regexp.Compile(f.stack); err != nil {
			return nil, fmt.Errorf("--stack: %w", err)
		}
	}
	if f.minSize.value != nil {
		out.Min = *f.minSize.value
	}
	out.Max = f.maxSize.value
	if out.Addr, err = parseHandle("--addr", f.addr); err != nil {
		return nil, err
	}
	if out.Stream, err = parseHandle("--stream", f.stream); err != nil {
		return nil, err
	}
	out.Pool, err = parsePool(f.pool)
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

// bind prepares the filter for a trace.
func (f *filter) bind(t *trace.Trace, start int64) (err error) {
	f.start = start
	if (f.from.timed || f.to.timed) && f.start == trace.NoTime && t.Events.Len() > 0 {
		return errors.New("the events have no times; give --from and --to as numbers of events")
	}
	if f.matcher, err = f.For(t); err != nil {
		return fmt.Errorf("--action %w", err)
	}
	return nil
}

// past reports whether no further event can pass.
func (f *filter) past(c *timeline.Cursor) bool {
	return f.to.set && !f.to.timed && c.Index > f.to.number
}

func (f *filter) passes(c *timeline.Cursor) bool {
	if f.from.set && f.isBefore(c, f.from) || f.to.set && f.to.timed && f.after(&c.Event, f.to) {
		return false
	}
	return f.matcher.Matches(c)
}

// isBefore reports whether an event lies before a place.
func (f *filter) isBefore(c *timeline.Cursor, p place) bool {
	if p.timed {
		return c.Event.Time == trace.NoTime || c.Event.Time-f.start < p.since.Microseconds()
	}
	return c.Index < p.number
}

func (f *filter) after(e *trace.Event, p place) bool {
	return e.Time == trace.NoTime || e.Time-f.start > p.since.Microseconds()
}
