package export

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func shownPerfetto(t testing.TB, traces []*trace.Trace, o Options) *shown {
	t.Helper()
	var buf bytes.Buffer
	if err := Perfetto(t.Context(), &buf, traces, o); err != nil {
		t.Fatal(err)
	}
	return readPerfetto(t, buf.Bytes())
}

func TestPerfetto(t *testing.T) {
	for _, name := range recordings(t) {
		f := open(t, name)
		tr := f.Traces[0]
		if tr.Events.Len() == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := shownPerfetto(t, f.Traces, Options{})
			checkCounters(t, s, tr)
			checkAllocations(t, s, tr)
			checkRanges(t, s, tr)
			ooms := 0
			for i := range tr.Events.Len() {
				if e := tr.Events.At(i); e.Action == alloc.ActionOOM {
					got := s.instants[ooms]
					if got.args["size"] != e.Size || got.args["device_free"] != e.Addr || got.begin != uint64(e.Time)*1000 || got.category != "oom" {
						t.Errorf("oom at event %d: %+v", i, got)
					}
					ooms++
				}
			}
			if len(s.instants) != ooms {
				t.Errorf("%d instants, %d ooms", len(s.instants), ooms)
			}
		})
	}
}

// checkCounters compares every value of the counters with totals computed from
// the back.
func checkCounters(t *testing.T, s *shown, tr *trace.Trace) {
	t.Helper()
	rows := expectedRows(tr)
	for name, value := range map[string]func(EventRow) int64{
		"reserved":         func(r EventRow) int64 { return r.ReservedBytes },
		"requested (live)": func(r EventRow) int64 { return r.RequestedBytes },
	} {
		got := s.counters[s.find(t, "GPU 0 memory", name)]
		var want []shownValue
		for _, r := range rows {
			if v := value(r); len(want) == 0 || want[len(want)-1].value != v {
				want = append(want, shownValue{uint64(*r.TimeUS) * 1000, v})
			}
		}
		// The value before the first event comes first, unless it stays.
		if len(got) == len(want)+1 && got[0].ns == want[0].ns {
			got = got[1:]
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(shownValue{})); d != "" {
			t.Errorf("%s: %.2000s", name, d)
		}
	}
}

// checkAllocations compares the slices with the large allocations.
func checkAllocations(t *testing.T, s *shown, tr *trace.Trace) {
	t.Helper()
	var got []*shownSlice
	for _, x := range s.slices {
		if x.category == "allocation" {
			got = append(got, x)
		}
	}
	live := map[uint64]*shownSlice{}
	before := 0
	for _, x := range got {
		if _, ok := x.args["event"]; ok {
			break
		}
		live[x.args["addr"].(uint64)] = x
		before++
	}
	next := before
	for i := range tr.Events.Len() {
		e := tr.Events.At(i)
		if e.Size < 1<<20 {
			continue
		}
		ns := uint64(e.Time) * 1000
		switch e.Action {
		case alloc.ActionAlloc:
			x := got[next]
			next++
			live[e.Addr] = x
			stack, _ := x.args["stack"].([]string)
			if x.begin != ns || x.args["event"] != uint64(i) || x.args["size"] != e.Size || x.args["addr"] != e.Addr ||
				x.args["stream"] != int64(e.Stream) || len(stack) != min(len(tr.Stacks.Frames(e.Stack)), maxStack+1) || x.name == "" {
				t.Fatalf("event %d is shown as %+v", i, x)
			}
			if len(stack) > 0 {
				f := tr.Stacks.Frame(tr.Stacks.Frames(e.Stack)[0])
				text := fmt.Sprintf("%s %s:%d", tr.Strings.Text(f.Name), tr.Strings.Text(f.File), f.Line)
				if len(text) <= 2*maxName && stack[0] != text {
					t.Fatalf("event %d: innermost frame %q, want %q", i, stack[0], text)
				}
			}
		case alloc.ActionFreeCompleted:
			x := live[e.Addr]
			if x == nil || x.end != ns || x.args["size"] != e.Size {
				t.Fatalf("event %d ends %+v", i, x)
			}
			delete(live, e.Addr)
		}
	}
	final := map[uint64]trace.StackID{}
	for _, seg := range tr.Segments {
		for _, b := range seg.Blocks {
			if b.State != alloc.Inactive && b.RequestedSize >= 1<<20 {
				final[b.Address] = b.Stack
			}
		}
	}
	if next != len(got) || len(live) != len(final) {
		t.Errorf("%d slices, want %d; %d without an end, want %d", len(got), next, len(live), len(final))
	}
	for addr, x := range live {
		stack, ok := final[addr]
		shown, _ := x.args["stack"].([]string)
		if x.end != 0 || !ok || len(shown) != min(len(tr.Stacks.Frames(stack)), maxStack+1) {
			t.Errorf("%#x is live at the end: %+v", addr, x)
		}
	}
}

// checkRanges compares the slices of annotations with the pairs in the file.
func checkRanges(t *testing.T, s *shown, tr *trace.Trace) {
	t.Helper()
	got := map[string]int{}
	n := 0
	for _, x := range s.slices {
		if x.category == "annotation" {
			got[fmt.Sprint(x.name, x.begin/1000, x.end/1000)]++
			n++
		}
	}
	open := map[string]int64{}
	want := 0
	for _, a := range tr.Annotations {
		name := tr.Strings.Text(a.Name)
		if a.Begin {
			open[name] = a.Time
			continue
		}
		key := fmt.Sprint(name, open[name], a.Time)
		if got[key]--; got[key] < 0 {
			t.Errorf("annotation %s from %d to %d is not shown", name, open[name], a.Time)
		}
		want++
	}
	if n != want {
		t.Errorf("%d annotations are shown, want %d", n, want)
	}
}

// Ranges that overlap go to different lanes.
func TestNest(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		var ranges []timeline.Range
		for i := range rng.IntN(30) {
			begin := rng.Int64N(20)
			r := timeline.Range{Name: fmt.Sprint(i), Begin: begin, End: begin + rng.Int64N(10)}
			switch rng.IntN(10) {
			case 0:
				r.Begin = math.MinInt64
			case 1:
				r.End = math.MaxInt64
			}
			ranges = append(ranges, r)
		}
		n := 0
		for _, lane := range nest(ranges) {
			n += len(lane)
			for i, a := range lane {
				for _, b := range lane[i+1:] {
					if apart := a.End <= b.Begin; b.Begin < a.Begin || !apart && b.End > a.End {
						t.Fatalf("%v and %v share a lane", a, b)
					}
				}
			}
		}
		if n != len(ranges) {
			t.Fatalf("%d ranges of %d", n, len(ranges))
		}
	}
	nested := []timeline.Range{{Name: "a", Begin: 0, End: 10}, {Name: "b", Begin: 1, End: 9}, {Name: "c", Begin: 2, End: 3}, {Name: "d", Begin: 3, End: 9}}
	if lanes := nest(nested); len(lanes) != 1 {
		t.Errorf("%d lanes for ranges that lie inside each other", len(lanes))
	}
}

// Odd files: no times, negative ones, long names, texts that are no UTF-8,
// ranges without begin or end, memory allocated twice, several devices.
func TestPerfettoOddities(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	f, err := snapshot.Read(t.Context(), "odd", strings.NewReader(`{"segments": [{"device": 1, "address": 0, "total_size": 4194304, "blocks": [
			{"address": 0, "size": 2097152, "requested_size": 2000000, "state": "active_allocated"}, {"address": 2097152, "size": 2097152, "state": "inactive"}]}],
		"device_traces": [[
			{"action": "alloc", "addr": 16, "size": 2000000, "stream": 1, "frames": [{"name": "\ud800`+long+`", "filename": "x.py", "line": 3}]},
			{"action": "alloc", "addr": 16, "size": 3000000, "stream": 1, "frames": []},
			{"action": "free_completed", "addr": 16, "size": 3000000, "stream": 1}],
			[{"action": "free_requested", "addr": 2097152, "size": 1048576, "stream": -1, "time_us": -50},
			{"action": "free_completed", "addr": 2097152, "size": 1048576, "stream": -1, "time_us": 9223372036854775807}]],
		"external_annotations": [
			{"stage": "END", "name": "early", "device": 1, "time_us": -100},
			{"stage": "START", "name": "late", "device": 1, "time_us": 5},
			{"stage": "START", "name": "`+long+`", "device": 0, "time_us": 1}]}`), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := shownPerfetto(t, f.Traces, Options{MinSlice: 1 << 20})
	type row struct {
		Device, Name, Category string
		Begin, End             uint64
	}
	var got []row
	for _, x := range s.slices {
		if len(x.name) > maxName || !utf8.ValidString(x.name) {
			t.Errorf("name %q", x.name)
		}
		got = append(got, row{s.tracks[s.tracks[x.track].parent].name, x.name[:min(5, len(x.name))], x.category, x.begin, x.end})
	}
	want := []row{
		{"GPU 0 memory", "x.py:", "allocation", 0, 1000},
		{"GPU 0 memory", "no st", "allocation", 1000, 2000},
		{"GPU 1 memory", "befor", "allocation", 50_000, 0},
		{"GPU 1 memory", "befor", "allocation", 50_000, math.MaxInt64 / 1000 * 1000},
		{"GPU 1 memory", "early", "annotation", 0, 0},
		{"GPU 1 memory", "late", "annotation", 105_000, 0},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if requested := s.counters[s.find(t, "GPU 1 memory", "requested (live)")]; len(requested) != 2 || requested[0] != (shownValue{50_000, 3048576}) || requested[1].value != 2000000 {
		t.Errorf("requested %v", requested)
	}
	if got := shownPerfetto(t, f.Traces, Options{MinSlice: 2_500_000}); len(got.slices) != 3 {
		t.Errorf("%d slices from 2.5 MB on", len(got.slices))
	}
}

func TestCapped(t *testing.T) {
	for in, want := range map[string]string{"short": "short", "0123456789": "0123456789", "0123456789a": "0123456…", "012345ääää": "012345…", "\xff": "\uFFFD"} {
		if got := capped(in, 10); got != want {
			t.Errorf("%q is cut to %q, want %q", in, got, want)
		}
	}
}
