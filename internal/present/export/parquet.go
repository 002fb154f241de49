package export

import (
	"context"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// EventRow is a row of the table of events. What the file lacks is null.
type EventRow struct {
	Index          int64   `parquet:"index,delta"`          // of the event on its device, from 0
	Device         *int32  `parquet:"device,optional,dict"` // null: page-locked host memory
	Action         string  `parquet:"action,dict"`
	Addr           *int64  `parquet:"addr,optional"`          // null for an oom
	DeviceFree     *int64  `parquet:"device_free,optional"`   // of an oom only
	Size           int64   `parquet:"size"`                   // as requested; of an oom rounded
	Stream         int64   `parquet:"stream,dict"`            // raw handle
	TimeUS         *int64  `parquet:"time_us,optional"`       // since the Unix epoch
	StackID        *int64  `parquet:"stack_id,optional,dict"` // in the table of stacks
	Pool           *string `parquet:"pool,optional,dict"`     // "(0,1)"; "(0,0)" is the default pool
	UserMetadata   *string `parquet:"user_metadata,optional,dict"`
	CompileContext *string `parquet:"compile_context,optional,dict"`
	ReservedBytes  int64   `parquet:"reserved_bytes"`  // after the event
	RequestedBytes int64   `parquet:"requested_bytes"` // after the event, in active blocks
}

// StackRow is a row of the table of stacks: one frame. A stack without frames
// has no rows.
type StackRow struct {
	StackID  int64  `parquet:"stack_id,delta"`
	Depth    int32  `parquet:"depth,delta"` // 0 is the innermost frame
	Name     string `parquet:"name,dict"`
	Filename string `parquet:"filename,dict"`
	Line     int64  `parquet:"line,dict"`
}

// The writer holds rowGroup rows, in batches.
const (
	rowGroup = 1 << 17
	batch    = 1 << 10
)

// Parquet writes the events of traces to one file and the stacks that they name
// to another. The traces must share their tables, as those of one file do.
func Parquet(ctx context.Context, events, stacks io.Writer, traces []*trace.Trace, o Options) error {
	w := newTable[EventRow](events)
	p := newProgress(traces, o)
	used := map[trace.StackID]bool{}
	for _, t := range traces {
		e := &eventTable{table: w, t: t, used: used}
		line := run.New(t, nil).Outline()
		if err := walk(ctx, line, p, e.add); err != nil {
			return err
		}
		if err := e.flush(); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	s := newTable[StackRow](stacks)
	if len(traces) > 0 {
		if err := writeStacks(ctx, s, traces[0], used); err != nil {
			return err
		}
	}
	return s.Close()
}

type table[T any] struct {
	*parquet.GenericWriter[T]
	rows []T
}

func newTable[T any](w io.Writer) *table[T] {
	return &table[T]{
		parquet.NewGenericWriter[T](w, parquet.MaxRowsPerRowGroup(rowGroup), parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("ashlar", "", "")),
		make([]T, 0, batch),
	}
}

// flush writes the batch.
func (t *table[T]) flush() error {
	_, err := t.Write(t.rows)
	t.rows = t.rows[:0]
	return err
}

// eventTable fills the table of events from one trace.
type eventTable struct {
	*table[EventRow]
	t    *trace.Trace
	used map[trace.StackID]bool

	// Where the pointers of a batch point to.
	device int32
	values [batch]rowValues
	pools  map[alloc.PoolID]*string
	texts  map[trace.StringID]*string
}

type rowValues struct{ addr, time, stack int64 }

func (e *eventTable) add(c *timeline.Cursor) error {
	if len(e.rows) == batch {
		if err := e.flush(); err != nil {
			return err
		}
	}
	ev := &c.Event
	v := &e.values[len(e.rows)]
	v.addr, v.time, v.stack = int64(ev.Addr), ev.Time, int64(ev.Stack)
	row := EventRow{
		Index: int64(c.Index), Action: e.t.Events.ActionName(ev.Action), Size: int64(ev.Size), Stream: int64(ev.Stream),
		UserMetadata: e.text(ev.Meta), CompileContext: e.text(ev.Compile),
		ReservedBytes: int64(c.Totals.Reserved), RequestedBytes: int64(c.Totals.Requested),
	}
	if !e.t.Host {
		e.device = int32(e.t.Device)
		row.Device = &e.device
	}
	if ev.Action == alloc.ActionOOM {
		row.DeviceFree = &v.addr
	} else {
		row.Addr = &v.addr
	}
	if ev.Time != trace.NoTime {
		row.TimeUS = &v.time
	}
	if ev.Stack != trace.NoStack {
		row.StackID = &v.stack
		if ev.Stack != trace.EmptyStack {
			e.used[ev.Stack] = true
		}
	}
	if id, ok := c.Pool(); ok {
		row.Pool = e.pool(id)
	}
	e.rows = append(e.rows, row)
	return nil
}

func (e *eventTable) text(id trace.StringID) *string {
	if id == trace.NoString {
		return nil
	}
	s, ok := e.texts[id]
	if !ok {
		if e.texts == nil {
			e.texts = map[trace.StringID]*string{}
		}
		text := clean(e.t.Strings.Text(id))
		s = &text
		e.texts[id] = s
	}
	return s
}

func (e *eventTable) pool(id alloc.PoolID) *string {
	s, ok := e.pools[id]
	if !ok {
		if e.pools == nil {
			e.pools = map[alloc.PoolID]*string{}
		}
		text := id.String()
		s = &text
		e.pools[id] = s
	}
	return s
}

// writeStacks writes the frames of the stacks in use.
func writeStacks(ctx context.Context, w *table[StackRow], t *trace.Trace, used map[trace.StackID]bool) error {
	for id := trace.EmptyStack + 1; int(id) < t.Stacks.Len(); id++ {
		if !used[id] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		for depth, frame := range t.Stacks.Frames(id) {
			if len(w.rows) == batch {
				if err := w.flush(); err != nil {
					return err
				}
			}
			f := t.Stacks.Frame(frame)
			w.rows = append(w.rows, StackRow{
				StackID: int64(id), Depth: int32(depth), Name: clean(t.Strings.Text(f.Name)), Filename: clean(t.Strings.Text(f.File)), Line: f.Line,
			})
		}
	}
	return w.flush()
}
