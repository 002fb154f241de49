package view

import (
	"fmt"
	"path"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/present/table"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/view/http"
	"github.com/ashlar-mem/ashlar/trace"
)

// exported are the columns of a list of events. Those that ashlar events --json
// has too have its names.
var exported = []table.Column{
	{Name: "index"},
	{Name: "time_us"},
	{Name: "since_start_us"},
	{Name: "action", Text: true},
	{Name: "size_bytes"},
	{Name: "addr"},
	{Name: "device_free_bytes"},
	{Name: "stream"},
	{Name: "pool", Text: true},
	{Name: "category", Text: true},
	{Name: "running_bytes"},
	{Name: "reserved_bytes"},
	{Name: "allocated_bytes"},
	{Name: "live_bytes"},
	{Name: "pending_bytes"},
	{Name: "active_blocks"},
	{Name: "site", Text: true},
	{Name: "user_metadata", Text: true},
	{Name: "compile_context", Text: true},
}

// flushEvery is how many events are written between two looks at whether
// somebody still wants them.
const flushEvery = 1 << 14

// export is api/export: the events that pass a filter as a file, written while
// they are found.
func (r *request) export() error {
	format := r.query.choice("format", "csv", "parquet")
	f, _ := r.eventFilter()
	if r.query.err != nil {
		return r.query.err
	}
	if _, err := f.For(r.run.trace); err != nil {
		return badRequest("action %v", err)
	}
	kind, begin := "text/csv; charset=utf-8", table.NewCSV
	if format == "parquet" {
		kind, begin = "application/vnd.apache.parquet", table.NewParquet
	}
	h := r.writer.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", r.run.exportName()+"."+format))
	r.writer.WriteHeader(http.StatusOK)
	if r.http.Method == http.MethodHead {
		return nil
	}
	out, flush := begin(r.writer, exported), http.NewResponseController(r.writer).Flush
	rows := &exportRows{run: r.run, sites: make([]table.Cell, r.run.trace.Stacks.Len()), cells: make([]table.Cell, len(exported))}
	n := 0
	err := r.run.eachEvent(r.http.Context(), f, func(c *timeline.Cursor, before, after *timeline.Level) {
		if n++; n%flushEvery == 0 {
			_ = flush() // whoever asked may have gone, which ends the context
		}
		rows.running += int64(after.Allocated) - int64(before.Allocated)
		out.Row(rows.row(c, after))
	})
	if err == nil {
		_ = out.Close() // as above
	}
	return nil
}

// exportName is what a list of events is called, without what a file system or a
// header may not take.
func (r *pageRun) exportName() string {
	name, _, _ := strings.Cut(path.Base(strings.ReplaceAll(r.input.Name, "\\", "/")), ".")
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || strings.ContainsRune(`"/:*?<>|`, c) {
			return '_'
		}
		return c
	}, name) + "-events"
}

// exportRows makes the rows of events.
type exportRows struct {
	run     *pageRun
	running int64
	sites   []table.Cell // by stack
	cells   []table.Cell
}

// row puts an event together. It holds until the next one.
func (x *exportRows) row(c *timeline.Cursor, after *timeline.Level) []table.Cell {
	e, t := &c.Event, x.run.trace
	out := x.cells[:0]
	add := func(known bool, cell table.Cell) {
		if !known {
			cell = table.Cell{}
		}
		out = append(out, cell)
	}
	integer := func(known bool, n uint64) { add(known, table.Int(int64(n))) }
	integer(true, uint64(c.Index))
	add(e.Time != trace.NoTime, table.Int(e.Time))
	add(e.Time != trace.NoTime, table.Int(e.Time-x.run.clock.First))
	add(true, table.Text(t.Events.ActionName(e.Action)))
	integer(true, e.Size)
	integer(e.Action != alloc.ActionOOM && e.Action != alloc.ActionSnapshot, e.Addr)
	integer(e.Action == alloc.ActionOOM, e.Addr)
	integer(true, e.Stream)
	pool, known := c.Pool()
	add(known, table.Text(pool.String()))
	life, category := x.run.lives.BlockOf(c.Index), table.Cell{}
	if life >= 0 {
		name, _ := x.run.category(life)
		category = table.Text(string(name))
	}
	out = append(out, category, table.Int(x.running))
	integer(true, c.Totals.Reserved)
	integer(true, after.Allocated)
	integer(true, c.Totals.Requested)
	integer(true, c.Totals.Pending)
	integer(true, uint64(c.Totals.Blocks))
	out = append(out, x.site(x.run.stackOf(c.Index)))
	add(e.Meta != trace.NoString, table.Text(t.Strings.Text(e.Meta)))
	add(e.Compile != trace.NoString, table.Text(t.Strings.Text(e.Compile)))
	return out
}

func (x *exportRows) site(id trace.StackID) table.Cell {
	if id <= trace.EmptyStack {
		return table.Cell{}
	}
	if x.sites[id] == (table.Cell{}) {
		x.sites[id] = table.Text(x.run.site(id))
	}
	return x.sites[id]
}
