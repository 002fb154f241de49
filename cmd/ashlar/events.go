package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/present/export"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// eventsOptions are the flags of events.
type eventsOptions struct {
	json   bool
	limit  int
	device *deviceFlag
	filter filterFlags
}

func newEvents(std stdio) *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:   "events FILE",
		Short: "List the events of a snapshot with running totals",
		Long: `Events lists the trace of a memory snapshot, one line for each event: its
number from 0, the time since the first event, what happened, the requested size,
address, stream and pool, and the totals after it: reserved bytes, and requested
bytes in active blocks. Filters do not change the totals, and they are right even
if recording began mid-run.

The last column has the innermost frame of the call stack outside the allocator,
and the innermost one of the user's program.

All filters must hold. A TIME is since the first event: 250ms, 1.5s. A SIZE is
80GiB, 512M, bytes. An ADDRESS finds every event whose memory it lies in.
--action takes names separated by commas; free and segment stand for all of their
kind. --stack is matched against each "file:line function" of the stack.

FILE is a snapshot as pickle or JSON, compressed with gzip, zstd or not, or -
for standard input.

Exit status: 0 answered, 2 the file or the flags are wrong.`,
		Example: "  ashlar events snapshot.pickle | head\n" +
			"  ashlar events --action oom,segment_alloc --from 1.5s snapshot.pickle\n" +
			"  ashlar events --stack 'model.py:12\\d' --min-size 100M --json snapshot.pickle",
		Args: oneFile,
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.Flags().IntVar(&o.limit, "limit", 0, "stop after this many events; 0 for all")
	o.device = addDeviceFlag(cmd)
	o.filter.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		quietPipe()
		if o.limit < 0 {
			return errors.New("--limit is negative")
		}
		f, err := o.filter.parse()
		if err != nil {
			return err
		}
		in, err := readInput(cmd.Context(), std, args[0])
		if err != nil {
			return err
		}
		if in.Kind != input.Snapshot {
			return failure{fmt.Errorf("%s has no events: it is %s; ashlar stats shows it", in.Name, in.Kind.Words())}
		}
		return listEvents(cmd.Context(), std, in, f, &o)
	}
	return cmd
}

func listEvents(ctx context.Context, std stdio, in *input.Input, f *filter, o *eventsOptions) error {
	t, why, err := input.Pick(in.Snapshot, o.device.choice())
	if err != nil {
		return failed(ctx, err)
	}
	if t.Events.Len() == 0 {
		std.errorf("%s has no events: %s; ashlar stats shows the state", in.Name, input.WhyNoEvents(in.Snapshot))
	}
	line := run.New(t, nil).Outline()
	start := timeline.NewClock(t).First
	if err := f.bind(t, start); err != nil {
		return failure{fmt.Errorf("%s: %w", in.Name, err)}
	}
	out := bufio.NewWriterSize(std.out, 64<<10)
	var p eventPrinter = text.NewEvents(out, line, start, std.style())
	if o.json {
		p = export.NewEvents(out, line, start, in.Snapshot, why)
	} else if why != "" {
		std.errorf("%s: %s", in.Name, why)
	}
	if line.AtLeast {
		std.errorf("%s: what was there before the first event is not known, so reserved and live are lower bounds", in.Name)
	}
	shown, err := printEvents(ctx, out, line.Cursor(), f, p, o.limit)
	if err != nil {
		if ctx.Err() == nil {
			return written(err)
		}
		std.errorf("%s", interruptedBy(ctx))
		return status(exitInput) // its document says so, too
	}
	if shown == 0 && t.Events.Len() > 0 {
		std.errorf("%s: none of the %s events matches", in.Name, count(t.Events.Len()))
	}
	return nil
}

// eventPrinter writes events one after the other.
type eventPrinter interface {
	Begin()
	Event(c *timeline.Cursor)
	End(shown int, interrupted bool)
}

// earlyLines are flushed at once, so that something is to be seen.
const earlyLines = 25

// printEvents shows the events that pass the filter. Errors of writing stay in
// the buffer, which is asked now and then.
func printEvents(ctx context.Context, out *bufio.Writer, c *timeline.Cursor, f *filter, p eventPrinter, limit int) (shown int, err error) {
	p.Begin()
	for c.Next() {
		if c.Index&0xfff == 0 {
			if _, err := out.Write(nil); err != nil {
				return shown, err
			}
			if ctx.Err() != nil {
				p.End(shown, true)
				return shown, errors.Join(out.Flush(), ctx.Err())
			}
		}
		if f.past(c) {
			break
		}
		if !f.passes(c) {
			continue
		}
		p.Event(c)
		if shown++; shown == limit {
			break
		}
		if shown == earlyLines {
			out.Flush() // an error shows up at the next write
		}
	}
	p.End(shown, false)
	return shown, out.Flush()
}
