package export

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// proto is a message read without its schema: the values of each field.
type proto map[uint64][]protoValue

type protoValue struct {
	n     uint64
	bytes []byte
}

func readProto(t testing.TB, b []byte) proto {
	t.Helper()
	m := proto{}
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatal("a varint is cut off")
		}
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		key := next()
		var v protoValue
		switch key & 7 {
		case 0:
			v.n = next()
		case 2:
			n := next()
			if n > uint64(len(b)) {
				t.Fatalf("field %d is cut off", key>>3)
			}
			v.bytes, b = b[:n], b[n:]
		default:
			t.Fatalf("field %d has wire type %d", key>>3, key&7)
		}
		m[key>>3] = append(m[key>>3], v)
	}
	return m
}

func (m proto) num(field uint64) uint64 {
	if len(m[field]) == 0 {
		return 0
	}
	return m[field][0].n
}

func (m proto) str(field uint64) string {
	if len(m[field]) == 0 {
		return ""
	}
	return string(m[field][0].bytes)
}

func (m proto) only(t testing.TB, what string, fields ...uint64) {
	t.Helper()
	for f := range m {
		if !slices.Contains(fields, f) {
			t.Fatalf("%s has a field %d", what, f)
		}
	}
}

// shownTrack is a track as Perfetto sees it.
type shownTrack struct {
	name    string
	parent  uint64
	counter bool
	unit    uint64
}

type shownValue struct {
	ns    uint64
	value int64
}

type shownSlice struct {
	track      uint64
	name       string
	category   string
	begin, end uint64 // end 0: none
	args       map[string]any
}

type shown struct {
	tracks   map[uint64]shownTrack
	counters map[uint64][]shownValue
	slices   []*shownSlice
	instants []*shownSlice
}

// readPerfetto reads a trace by the numbers of the published .proto files:
// trace.proto, trace_packet.proto, interned_data.proto, and in track_event/
// track_descriptor, counter_descriptor, track_event and debug_annotation.
func readPerfetto(t testing.TB, data []byte) *shown {
	t.Helper()
	s := &shown{tracks: map[uint64]shownTrack{}, counters: map[uint64][]shownValue{}}
	open := map[uint64][]*shownSlice{}
	interned := map[uint64]map[uint64]string{2: {}, 3: {}, 29: {}}
	file := readProto(t, data)
	file.only(t, "Trace", 1)
	for i, raw := range file[1] {
		p := readProto(t, raw.bytes)
		p.only(t, "TracePacket", 8, 10, 11, 12, 13, 60)
		if flags := p.num(13); p.num(10) == 0 || i == 0 && flags != 3 || i > 0 && flags != 2 {
			t.Fatalf("packet %d: sequence %d, flags %d", i, p.num(10), flags)
		}
		for _, raw := range p[12] {
			d := readProto(t, raw.bytes)
			d.only(t, "InternedData", 2, 3, 29)
			for field, entries := range d {
				for _, raw := range entries {
					e := readProto(t, raw.bytes)
					if _, ok := interned[field][e.num(1)]; ok || e.num(1) == 0 || !utf8.ValidString(e.str(2)) {
						t.Fatalf("packet %d interns %d as %q", i, e.num(1), e.str(2))
					}
					interned[field][e.num(1)] = e.str(2)
				}
			}
		}
		switch {
		case len(p[60]) == 1:
			d := readProto(t, p[60][0].bytes)
			d.only(t, "TrackDescriptor", 1, 2, 5, 8, 11, 12)
			track := shownTrack{name: d.str(2), parent: d.num(5), counter: len(d[8]) > 0}
			if track.counter {
				track.unit = readProto(t, d[8][0].bytes).num(3)
			}
			if _, ok := s.tracks[d.num(1)]; ok || d.num(1) == 0 || track.parent != 0 && s.tracks[track.parent].name == "" {
				t.Fatalf("packet %d: track %d under %d", i, d.num(1), track.parent)
			}
			s.tracks[d.num(1)] = track
		case len(p[11]) == 1:
			s.event(t, p.num(8), readProto(t, p[11][0].bytes), open, interned)
		default:
			t.Fatalf("packet %d has no content", i)
		}
	}
	return s
}

func (s *shown) event(t testing.TB, ns uint64, e proto, open map[uint64][]*shownSlice, interned map[uint64]map[uint64]string) {
	t.Helper()
	e.only(t, "TrackEvent", 4, 9, 10, 11, 22, 30)
	id := e.num(11)
	track, ok := s.tracks[id]
	if !ok || track.counter != (e.num(9) == 4) {
		t.Fatalf("an event of type %d on track %d", e.num(9), id)
	}
	slice := &shownSlice{track: id, name: interned[2][e.num(10)], category: e.str(22), begin: ns, args: map[string]any{}}
	for _, raw := range e[4] {
		a := readProto(t, raw.bytes)
		name := interned[3][a.num(1)]
		switch {
		case name == "" || len(a) != 2:
			t.Fatalf("annotation %v", a)
		case len(a[12]) > 0:
			var stack []string
			for _, raw := range a[12] {
				stack = append(stack, interned[29][readProto(t, raw.bytes).num(17)])
			}
			slice.args[name] = stack
		case len(a[4]) > 0:
			slice.args[name] = int64(a.num(4))
		case len(a[7]) > 0:
			slice.args[name] = a.num(7)
		case len(a[3]) > 0:
			slice.args[name] = a.num(3)
		}
	}
	switch e.num(9) {
	case 1:
		s.slices = append(s.slices, slice)
		open[id] = append(open[id], slice)
	case 2:
		n := len(open[id])
		if n == 0 || open[id][n-1].begin > ns {
			t.Fatalf("an end at %d on track %d without a begin", ns, id)
		}
		open[id][n-1].end = ns
		open[id] = open[id][:n-1]
	case 3:
		s.instants = append(s.instants, slice)
	case 4:
		if track.unit != 3 {
			t.Fatalf("counter %q is in unit %d", track.name, track.unit)
		}
		s.counters[id] = append(s.counters[id], shownValue{ns, int64(e.num(30))})
	default:
		t.Fatalf("an event of type %d", e.num(9))
	}
}

// find returns the track of a name under a parent.
func (s *shown) find(t testing.TB, parent, name string) uint64 {
	t.Helper()
	for id, track := range s.tracks {
		if track.name == name && s.tracks[track.parent].name == parent {
			return id
		}
	}
	t.Fatalf("no track %q under %q", name, parent)
	return 0
}

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
	final := map[uint64]bool{}
	for _, seg := range tr.Segments {
		for _, b := range seg.Blocks {
			if b.State != "inactive" && b.RequestedSize >= 1<<20 {
				final[b.Address] = true
			}
		}
	}
	if next != len(got) || len(live) != len(final) {
		t.Errorf("%d slices, want %d; %d without an end, want %d", len(got), next, len(live), len(final))
	}
	for addr, x := range live {
		if x.end != 0 || !final[addr] {
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
