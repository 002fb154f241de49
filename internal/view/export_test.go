package view

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/present/export"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// eventsOf is what ashlar events --json writes for a filter, as numbers and texts
// by name.
func eventsOf(t *testing.T, r *pageRun, f timeline.Filter) []map[string]any {
	t.Helper()
	m, err := f.For(r.trace)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := bufio.NewWriter(&b)
	doc := export.NewEvents(out, r.line, r.clock.First, &snapshot.File{}, "")
	doc.Begin()
	n := 0
	for c := r.line.Cursor(); c.Next(); {
		if m.Matches(c) {
			doc.Event(c)
			n++
		}
	}
	doc.End(n, false)
	out.Flush()
	var got struct {
		Events []map[string]any `json:"events"`
	}
	d := json.NewDecoder(&b)
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got.Events
}

// cell is a value of that document as a table has it.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any: // a pool
		return fmt.Sprintf("(%v,%v)", v[0], v[1])
	}
	return fmt.Sprint(v)
}

// A list of events as CSV and as Parquet has every event of the filter, with what
// ashlar events and the page's list say.
func TestExport(t *testing.T) {
	type parquetRow struct {
		Index    *int64  `parquet:"index,optional"`
		Size     *int64  `parquet:"size_bytes,optional"`
		Action   *string `parquet:"action,optional"`
		Category *string `parquet:"category,optional"`
		Running  *int64  `parquet:"running_bytes,optional"`
		Site     *string `parquet:"site,optional"`
	}
	c := serve(t, nil, "snapshots/streams_graphs-tight-default", "variety/midrun", "variety/compile")
	least := uint64(1 << 20)
	for id := 1; id <= 3; id++ {
		r, err := c.s.runs.ready(id)
		if err != nil {
			t.Fatal(err)
		}
		for q, f := range map[string]timeline.Filter{
			"": {}, "&action=alloc": {Actions: []string{"alloc"}}, "&min_size=1MiB&action=free,oom": {Actions: []string{"free", "oom"}, Min: least},
		} {
			path := fmt.Sprintf("run=%d%s", id, q)
			want := eventsOf(t, r, f)
			body := c.get("api/export?" + path)
			got, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
			if err != nil || len(got) != len(want)+1 {
				t.Fatalf("%s: %d lines for %d events: %v", path, len(got), len(want), err)
			}
			at := map[string]int{}
			for i, name := range got[0] {
				at[name] = i
			}
			data := c.get("api/export?format=parquet&" + path)
			rows, err := parquet.Read[parquetRow](bytes.NewReader(data), int64(len(data)))
			if err != nil || len(rows) != len(want) {
				t.Fatalf("%s: %d rows for %d events: %v", path, len(rows), len(want), err)
			}
			for i, e := range want {
				line := got[i+1]
				for name, column := range at {
					if v, ok := e[name]; ok && line[column] != cell(v) {
						t.Fatalf("%s: %s of event %v is %q, ashlar events has %v", path, name, e["index"], line[column], v)
					}
				}
				row := rows[i]
				if line[at["index"]] != fmt.Sprint(*row.Index) || line[at["size_bytes"]] != fmt.Sprint(*row.Size) || line[at["action"]] != *row.Action ||
					line[at["running_bytes"]] != fmt.Sprint(*row.Running) || row.Site != nil && line[at["site"]] != *row.Site || row.Category != nil && line[at["category"]] != *row.Category {
					t.Fatalf("%s: as CSV %q, as Parquet %+v", path, line, row)
				}
			}
			var list eventList
			c.json(fmt.Sprintf("api/events?count=1000&%s", path), &list)
			for i, e := range list.Rows {
				line := got[i+1]
				running, _ := strconv.ParseInt(line[at["running_bytes"]], 10, 64)
				if line[at["allocated_bytes"]] != fmt.Sprint(e.Allocated) || running != e.Running || e.Site != nil && line[at["site"]] != *e.Site || e.Category != nil && line[at["category"]] != string(*e.Category) {
					t.Fatalf("%s: event %d is %+v in the list, %q as a file", path, e.Event, e, line)
				}
			}
		}
	}
	_, header, _ := c.do("GET", "api/export?run=1", nil)
	if got := header.Get("Content-Disposition"); got != `attachment; filename="streams_graphs-tight-default-events.csv"` {
		t.Errorf("the file is called %s", got)
	}
	for q, want := range map[string]string{"format=xls": "csv, parquet", "action=nonsense": "no such action", "stack=" + url.QueryEscape("("): "no regular expression"} {
		if status, _, body := c.do("GET", "api/export?run=1&"+q, nil); status != 400 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s", q, status, body)
		}
	}
}

// Folded, a free is one row, and nothing is lost.
func TestEventsFolded(t *testing.T) {
	c := serve(t, nil, "snapshots/streams_graphs-tight-default", "variety/midrun")
	for id := 1; id <= 2; id++ {
		r, _ := c.s.runs.ready(id)
		for _, q := range []string{"", "&action=free", "&action=free_completed", "&action=free_requested", "&min_size=1MiB", "&stack=forward"} {
			read := func(fold string) (rows []eventRow, list eventList) {
				for row := 0; ; row += maxRows {
					list = eventList{}
					c.json(fmt.Sprintf("api/events?run=%d&count=%d&row=%d%s%s", id, maxRows, min(row, r.events()), q, fold), &list)
					if rows = append(rows, list.Rows...); len(list.Rows) < maxRows {
						return rows, list
					}
				}
			}
			all, plain := read("")
			folded, list := read("&fold=1")
			if list.Matches != len(all) || list.Listed != len(folded) || plain.Listed != len(all) {
				t.Errorf("%s: %d events in %d rows, folded %d in %d", q, len(all), plain.Listed, list.Matches, list.Listed)
			}
			seen := map[int]eventRow{}
			for _, row := range folded {
				seen[row.Event] = row
				if row.Completed == nil {
					continue
				}
				end := r.trace.Events.At(*row.Completed)
				if row.Action != alloc.ActionFreeRequested.String() || end.Action != alloc.ActionFreeCompleted || end.Addr != *row.Address || *row.Completed <= row.Event {
					t.Fatalf("%s: %+v is no free that ends with %+v", q, row, end)
				}
				seen[*row.Completed] = row
			}
			for _, row := range all {
				if in, ok := seen[row.Event]; !ok || in.Event == row.Event && in.Running != row.Running {
					t.Fatalf("%s: event %d is in %+v, alone %+v", q, row.Event, in, row)
				}
			}
			if len(seen) != len(all) {
				t.Errorf("%s: %d events are in the folded list, %d in all", q, len(seen), len(all))
			}
			if q == "" && (len(folded) >= len(all) || list.Matches != r.events()) {
				t.Errorf("%d rows of %d are left", len(folded), len(all))
			}
			// An event that is folded is found in its row.
			for i, row := range folded {
				if row.Completed == nil || i%7 > 0 {
					continue
				}
				c.json(fmt.Sprintf("api/events?run=%d&count=1&from=%d%s&fold=1", id, *row.Completed, q), &list)
				if list.First != i {
					t.Fatalf("%s: event %d is in row %d, found at %d", q, *row.Completed, i, list.First)
				}
			}
		}
	}
}
