package export

import (
	"encoding/binary"
	"slices"
	"testing"
	"unicode/utf8"
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
