package view

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

func TestMeta(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default", "variety/nocontext", "variety/expand_tight")
	var m overview
	c.json("api/meta?run=1", &m)
	r, err := c.s.runs.ready(1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := stats.NewSnapshot(t.Context(), r.input.Snapshot, stats.Options{Device: input.AnyDevice})
	if err != nil {
		t.Fatal(err)
	}
	if m.Events != f.Events || *m.FirstTime != *f.FirstTime || *m.LastTime != *f.LastTime || !m.Exact || m.Start != "recorded" {
		t.Errorf("%+v", m)
	}
	if m.Peak.Allocated.Bytes != *f.Memory.Allocated.Peak || m.Peak.Allocated.Event != *f.Memory.Allocated.At.Event ||
		m.Peak.Reserved.Bytes != *f.Memory.Reserved.Peak || m.Peak.Reserved.Event != *f.Memory.Reserved.At.Event {
		t.Errorf("peaks %+v, want %+v", m.Peak, f.Memory)
	}
	if m.MaxReserved != m.Peak.Reserved.Bytes || m.MaxLive < m.Peak.Allocated.Bytes {
		t.Errorf("at most %d reserved and %d live", m.MaxReserved, m.MaxLive)
	}
	if len(m.OOMs) != len(f.OOMs) || m.OOMs[0] != *f.OOMs[0].Event || m.OOMCount != len(f.OOMs) {
		t.Errorf("ooms %v, want %v", m.OOMs, f.OOMs)
	}
	if m.Limit.Source != "inferred" || m.Limit.Max == nil || *m.Limit.Max < m.Limit.MinOr() {
		t.Errorf("limit %+v", m.Limit)
	}
	if len(m.Steps) == 0 || m.Steps[0].Begin >= m.Steps[0].End || m.StepsSource == "" || len(m.Ranges) == 0 || len(m.Categories) != 7 {
		t.Errorf("%d steps from %q, %d ranges, %d categories", len(m.Steps), m.StepsSource, len(m.Ranges), len(m.Categories))
	}
	for i, s := range m.Ranges {
		if s.BeginEvent < 0 || s.BeginEvent > s.EndEvent || s.EndEvent > m.Events || i > 0 && s.BeginEvent < m.Ranges[i-1].BeginEvent {
			t.Errorf("range %d: %+v", i, s)
		}
	}
}

// MinOr is the lower end of a limit.
func (l limit) MinOr() uint64 {
	if l.Min == nil {
		return 0
	}
	return *l.Min
}

// The sums over the blocks are the totals, at any moment.
func TestSegments(t *testing.T) {
	for _, name := range []string{"snapshots/streams_graphs-tight-default", "variety/expand_tight", "variety/ring"} {
		c := serve(t, nil, name)
		r, err := c.s.runs.ready(1)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(2, 2))
		moments := []int{-1, r.events() - 1}
		for range 20 {
			moments = append(moments, rng.IntN(r.events()))
		}
		for _, m := range r.peaks.OOMs {
			moments = append(moments, m.Index)
		}
		for _, event := range moments {
			body := c.get(fmt.Sprintf("api/segments?run=1&event=%d", event))
			s := read[segmentMap](t, body)
			if again, err := jsonLine(s); err != nil || !bytes.Equal(again, body) {
				t.Fatalf("event %d: %v, the answer is no segmentMap:\n%s\n%s", event, err, body, again)
			}
			var reserved, free, largest, allocated, pending uint64
			for _, g := range s.Segments {
				reserved += g.Size
				end := int64(0)
				for _, b := range g.Blocks {
					if b[0] != end {
						t.Fatalf("event %d, segment %#x: a block at %d, the one before ends at %d", event, g.Address, b[0], end)
					}
					end += b[1]
					size := uint64(b[1])
					if (b[3] >= 0) != (b[2] == 1 || b[2] == 2) || b[4] > b[1] {
						t.Fatalf("event %d: block %v", event, b)
					}
					switch b[2] {
					case 0:
						free += size
						largest = max(largest, size)
					case 1:
						allocated += size
					case 2:
						pending += size
					}
				}
				if end != int64(g.Span) {
					t.Fatalf("event %d, segment %#x: blocks up to %d of %d", event, g.Address, end, g.Span)
				}
			}
			level := r.course.At(event)
			if reserved != s.Reserved || reserved != level.Reserved || free != s.Free || largest != s.LargestFree ||
				allocated != s.Allocated || allocated != level.Allocated || pending != s.Pending || reserved != free+allocated+pending {
				t.Fatalf("event %d: %d reserved, %d allocated, %d pending, %d free in blocks; said %+v", event, reserved, allocated, pending, free, s)
			}
			oom := event >= 0 && r.trace.Events.Action.At(event) == alloc.ActionOOM
			if oom != (s.Request != nil) || oom && (s.Request.Segment < s.Request.Size || s.Request.Size != r.trace.Events.Size.At(event)) {
				t.Errorf("event %d: request %+v", event, s.Request)
			}
		}
	}
}

func TestAlloc(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default", "variety/ring", "variety/cppstacks", "variety/stateonly")
	for id := 1; id <= 4; id++ {
		r, err := c.s.runs.ready(id)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(2, 2))
		for k := range 40 {
			life := rng.IntN(r.lives.Len())
			if k == 0 {
				life = 0
			}
			var a allocation
			c.json(fmt.Sprintf("api/alloc?run=%d&id=%d", id, life), &a)
			if a.Size != r.lives.Size[life] || a.Address != r.lives.Address(life) || a.Predates != (life < r.lives.Older) {
				t.Fatalf("%+v", a)
			}
			if a.AllocEvent != nil && r.lives.BlockOf(*a.AllocEvent) != life || a.FreeEvent != nil && r.lives.BlockOf(*a.FreeEvent) != life {
				t.Fatalf("life %d: events %v and %v", life, a.AllocEvent, a.FreeEvent)
			}
			if a.Predates != (a.AllocEvent == nil) || (a.Site == nil) != (len(a.Frames) == 0) || (a.Missing == nil) != (len(a.Frames) > 0) {
				t.Errorf("life %d: %+v", life, a)
			}
			if a.Segment == nil || a.Address < a.Segment.Address || a.Address+a.Size > a.Segment.Address+a.Segment.Size {
				t.Errorf("life %d at %#x: segment %+v", life, a.Address, a.Segment)
			}
			if a.AllocEvent != nil && a.Total < a.Size {
				t.Errorf("life %d of %d bytes: %d live in all", life, a.Size, a.Total)
			}
			uses := 0
			for i := range life {
				if r.lives.Address(i) == a.Address {
					uses++
				}
			}
			if a.Use != uses || a.Category == "" || a.Confidence == "" {
				t.Errorf("life %d: use %d, want %d; %s, %s", life, a.Use, uses, a.Category, a.Confidence)
			}
		}
	}
	// The stack of the free is there for what was allocated before the trace.
	r, _ := c.s.runs.ready(2)
	found := false
	for life := range r.lives.Older {
		var a allocation
		if r.lives.Freed[life] != timeline.Never {
			c.json(fmt.Sprintf("api/alloc?run=2&id=%d", life), &a)
			found = found || len(a.FreeFrames) > 0
		}
	}
	if !found {
		t.Error("no stack of a free")
	}
}

// check goes through a tree as the page does: children are inside their parents
// and the roots are the whole.
func (s *stackTree) check(t *testing.T, what string) {
	t.Helper()
	roots := uint64(0)
	var open []int // nodes around
	left := map[int]int64{}
	for i, n := range s.Nodes {
		if n.Depth > len(open) {
			t.Fatalf("%s: node %d is at depth %d inside %d", what, i, n.Depth, len(open))
		}
		open = append(open[:n.Depth], i)
		left[i] = int64(n.Bytes) - int64(n.Self)
		if n.Depth == 0 {
			roots += n.Bytes
		} else {
			left[open[n.Depth-1]] -= int64(n.Bytes)
		}
	}
	slack := uint64(len(s.Nodes)) // averages are rounded
	if roots+slack < s.Total || roots > s.Total+slack || s.Total == 0 {
		t.Errorf("%s: %d in the roots, %d in all", what, roots, s.Total)
	}
	for i, n := range left {
		if n < -int64(slack) || n > int64(slack) {
			t.Errorf("%s: node %d (%s) has %d bytes that are in no child", what, i, s.Nodes[i].Name, n)
		}
	}
}

func TestStacks(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default", "variety/cppstacks", "variety/nocontext", "variety/ring")
	for id := 1; id <= 4; id++ {
		r, err := c.s.runs.ready(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{"peak=1", "event=100", "area=1", "area=1&from=50&to=500"} {
			for _, user := range []string{"0", "1"} {
				what := fmt.Sprintf("run=%d&%s&user=%s", id, q, user)
				var s stackTree
				c.json("api/stacks?"+what, &s)
				s.check(t, what)
				switch q {
				case "peak=1":
					if want := r.course.At(r.allocatedPeak().Event).Active; s.Total != want {
						t.Errorf("%s: %d bytes, want %d", what, s.Total, want)
					}
				case "area=1":
					if m := r.overview().MaxLive; s.Total > m {
						t.Errorf("%s: %d on average, at most %d", what, s.Total, m)
					}
				}
			}
		}
	}
	// The average is the area under the curve.
	r := loadRun(t, "snapshots/gpt2_varlen-tight-default")
	sum, n := 0.0, r.events()
	for i := range n - 1 {
		sum += float64(r.course.At(i).Active) * float64(r.clock.At(i+1)-r.clock.At(i))
	}
	want := sum / float64(r.clock.Last-r.clock.First)
	got := float64(r.stackTree(r.averages(0, n, &selection{of: r.blocks()}), &stackLook{view: viewDown}).Total)
	if got < 0.999*want || got > 1.001*want {
		t.Errorf("on average %v, want %v", got, want)
	}
	// Outermost first; a filter leaves the others out.
	var all, some stackTree
	c.json("api/stacks?run=1&peak=1", &all)
	c.json("api/stacks?run=1&peak=1&min=10MiB", &some)
	if some.Total == 0 || some.Total >= all.Total || all.Nodes[0].Name != "<module>" {
		t.Errorf("%d of %d bytes are in large blocks; the outermost frame is %q", some.Total, all.Total, all.Nodes[0].Name)
	}
}

func TestLegend(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	r, _ := c.s.runs.ready(1)
	for _, by := range colourings {
		var l struct {
			Entries []legendEntry
			Total   uint64 `json:"total_bytes"`
			Others  uint64 `json:"others_bytes"`
		}
		c.json("api/legend?run=1&peak=1&color="+by, &l)
		sum := l.Others
		for i, e := range l.Entries {
			sum += e.Bytes
			if e.Label == "" || e.Blocks == 0 || i > 0 && e.Bytes > l.Entries[i-1].Bytes {
				t.Errorf("%s: %+v", by, e)
			}
		}
		if want := r.course.At(r.allocatedPeak().Event).Active; sum != want || l.Total != want {
			t.Errorf("%s: %d bytes, %d in all, want %d", by, sum, l.Total, want)
		}
	}
}

// Filters of events find what a walk over all finds, forwards and backwards.
func TestEvents(t *testing.T) {
	c := serve(t, nil, "snapshots/streams_graphs-tight-default")
	r, _ := c.s.runs.ready(1)
	addr := r.lives.Address(100)
	re := regexp.MustCompile(`forward`)
	for q, passes := range map[string]func(e *trace.Event) bool{
		"":                             func(*trace.Event) bool { return true },
		"action=oom":                   func(e *trace.Event) bool { return e.Action == alloc.ActionOOM },
		"action=segment_alloc,free":    func(e *trace.Event) bool { return e.Action >= 1 && e.Action <= 3 },
		"min_size=1MiB":                func(e *trace.Event) bool { return e.Size >= 1<<20 },
		"min_size=512&max_size=2048":   func(e *trace.Event) bool { return e.Size >= 512 && e.Size <= 2048 },
		"stream=0":                     func(e *trace.Event) bool { return e.Stream == 0 },
		fmt.Sprintf("addr=%#x", addr):  func(e *trace.Event) bool { return e.Addr <= addr && addr < e.Addr+e.Size && e.Action < alloc.ActionOOM },
		"stack=forward&action=alloc":   func(e *trace.Event) bool { return e.Action == 0 && matches(r, e.Stack, re) },
		"action=snapshot&min_size=1TB": func(*trace.Event) bool { return false },
	} {
		var want []int
		for i := range r.events() {
			if e := r.trace.Events.At(i); passes(&e) {
				want = append(want, i)
			}
		}
		var got []int
		for from, more := 0, true; more; {
			var l eventList
			c.json(fmt.Sprintf("api/events?run=1&count=1000&from=%d&%s", from, q), &l)
			if l.Matches != len(want) || l.Total != r.events() || l.First != len(got) {
				t.Fatalf("%s: %d matches, want %d; first %d", q, l.Matches, len(want), l.First)
			}
			for _, row := range l.Rows {
				got = append(got, row.Event)
			}
			if more = l.Next != nil; more {
				from = *l.Next
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d events, want %d", q, len(got), len(want))
		}
		if len(want) < 20 {
			continue
		}
		// From the middle by position, and backwards.
		var l eventList
		c.json(fmt.Sprintf("api/events?run=1&count=5&row=%d&%s", len(want)/2, q), &l)
		if l.Rows[0].Event != want[len(want)/2] || l.First != len(want)/2 {
			t.Errorf("%s: row %d is event %d", q, len(want)/2, l.Rows[0].Event)
		}
		c.json(fmt.Sprintf("api/events?run=1&count=5&dir=-1&from=%d&%s", want[10], q), &l)
		for i, row := range l.Rows {
			if row.Event != want[5+i] {
				t.Errorf("%s: backwards from %d: %d at %d, want %d", q, want[10], row.Event, i, want[5+i])
			}
		}
		if l.Next == nil || *l.Next != want[5] {
			t.Errorf("%s: backwards goes on at %v, want %d", q, l.Next, want[5])
		}
	}
}

func matches(r *pageRun, id trace.StackID, re *regexp.Regexp) bool {
	for _, f := range timeline.Frames(r.trace, id) {
		if re.MatchString(fmt.Sprintf("%s:%d %s", f.Filename, f.Line, f.Name)) {
			return true
		}
	}
	return false
}

// The rows have the totals that a walk finds.
func TestEventRows(t *testing.T) {
	c := serve(t, nil, "variety/expand_tight")
	r, _ := c.s.runs.ready(1)
	var l eventList
	c.json("api/events?run=1&from=1000&count=500&frames=1", &l)
	cursor := r.line.Cursor()
	for range 1000 {
		cursor.Next()
	}
	frames := 0
	for _, row := range l.Rows {
		cursor.Next()
		e := &cursor.Event
		if row.Event != cursor.Index || row.Action != e.Action.String() || row.Size != e.Size || *row.Time != e.Time || *row.Since != e.Time-r.clock.First {
			t.Fatalf("%+v, want event %d: %+v", row, cursor.Index, e)
		}
		if row.Reserved != cursor.Totals.Reserved || row.Active != cursor.Totals.Active || row.Allocated != cursor.Totals.Allocated {
			t.Fatalf("%+v, want %+v", row, cursor.Totals)
		}
		if row.Alloc != nil && r.lives.Address(*row.Alloc) != *row.Address {
			t.Fatalf("%+v is about another allocation", row)
		}
		frames += len(row.Frames)
	}
	if len(l.Rows) != 500 || frames == 0 {
		t.Errorf("%d rows, %d frames", len(l.Rows), frames)
	}
	c.json("api/events?run=1&action=oom", &l)
	if len(l.Rows) != 1 || l.Rows[0].Address != nil || l.Rows[0].DeviceFree == nil {
		t.Errorf("oom: %+v", l.Rows)
	}
}

func TestFind(t *testing.T) {
	c := serve(t, nil, "snapshots/streams_graphs-tight-default")
	r, _ := c.s.runs.ready(1)
	n := r.events()
	is := func(event int, what string) bool {
		a := r.trace.Events.Action.At(event)
		switch what {
		case "oom":
			return a == alloc.ActionOOM
		case "alloc":
			return a == alloc.ActionAlloc
		}
		return strings.HasPrefix(a.String(), "segment")
	}
	for _, what := range []string{"oom", "segment", "alloc"} {
		for _, from := range []int{-1, 0, n / 2, n - 1} {
			for _, dir := range []int{1, -1} {
				want := -1
				for i := from + dir; i >= 0 && i < n; i += dir {
					if is(i, what) {
						want = i
						break
					}
				}
				var got foundEvent
				c.json(fmt.Sprintf("api/find?run=1&what=%s&after=%d&dir=%d", what, from, dir), &got)
				if got.Event == nil && want >= 0 || got.Event != nil && *got.Event != want {
					t.Errorf("%s after %d in direction %d: %v, want %d", what, from, dir, got.Event, want)
				}
			}
		}
	}
}

func TestAt(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	r, _ := c.s.runs.ready(1)
	event := r.events() / 2
	y := uint64(0)
	for _, i := range r.lives.Alive(nil, event) {
		for _, at := range []uint64{y, y + r.lives.Size[i] - 1} {
			var got foundAlloc
			c.json(fmt.Sprintf("api/at?run=1&event=%d&y=%d", event, at), &got)
			if got.Alloc == nil || *got.Alloc != i {
				t.Fatalf("at %d: %v, want %d", at, got.Alloc, i)
			}
		}
		y += r.lives.Size[i]
	}
	var got foundAlloc
	c.json(fmt.Sprintf("api/at?run=1&x=%d.5&y=%d", event, y), &got)
	if got.Alloc != nil {
		t.Errorf("above all: %d", *got.Alloc)
	}
}
