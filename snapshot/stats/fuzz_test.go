package stats

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/cost"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// FuzzParse: no panic, no endless looking, and what is read is in order and consistent.
func FuzzParse(f *testing.F) {
	s := recordings(f)[0]
	f.Add([]byte(s.Summary))
	f.Add([]byte(smallTable + smallTable))
	f.Add([]byte(pprint(s.Stats, "OrderedDict([", "('%s', %d)", ",\n             ", "])")))
	for _, text := range []string{
		`{"num_ooms": 1, "active.all.peak": -2.0, "x": [null, true, 1e5, "a\"b"], "reserved_bytes": {"all": {"current": 5}}}`,
		"[rank0]: OrderedDict({'active.all.peak': 12,\n[rank0]: 'num_ooms': 3})", `{0: {'active.all.peak': 1}, "cuda:1": {'active.all.peak': 1}}`,
		"{'active.all.pe\nak': 12\n34, 'a': (1, (2, (3,)))}", "collections.OrderedDict([['active.all.peak', 1]])",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []*Dump
		var err error
		used := cost.Bytes(func() { all, err = ParseAll(data) })
		if err == nil && len(all) == 0 {
			t.Fatal("neither a dump nor an error")
		}
		line := 1
		for _, d := range all {
			if d.Line < line || d.Line > 1+strings.Count(string(data), "\n") {
				t.Fatalf("line %d after %d", d.Line, line)
			}
			line = d.Line
			if len(d.Values)+len(d.Missing) != len(sortedKeys()) || d.Exact != (d.Source != Summary) || d.Exact && len(d.Ranges) > 0 {
				t.Fatalf("%d values, %d missing, exact %v, %d ranges, source %s", len(d.Values), len(d.Missing), d.Exact, len(d.Ranges), d.Source)
			}
			for key, r := range d.Ranges {
				if v, ok := d.Values[key]; !ok || r.Low > uint64(v) || r.High < uint64(v) || r.Exact() {
					t.Fatalf("%s: %d in %+v", key, v, r)
				}
			}
		}
		if used > 4<<20+10_000*uint64(len(data)) {
			t.Fatalf("%d bytes of memory for %d bytes", used, len(data))
		}
	})
}

// TestLong: texts that would be slow, or deep, if nothing limited it.
func TestLong(t *testing.T) {
	for _, piece := range short.Some([]string{
		"[", "{", "(", "OrderedDict(", "OrderedDict([", "{'a':", "[1,", "{'active.all.peak': 1,", "'", "[\"", "1\n", "{'active.all.peak': 1}", "[[1],",
		"|", "| Allocated memory |1|2|3|4|\n", "PyTorch CUDA memory summary, device ID 0\n", "| from small pool |\n", "{'num_ooms':{", "\\n", "O", "[('num_ooms', 1),",
	}, 4) {
		parse := func(n int) {
			text := "num_ooms " + strings.Repeat(piece, n/len(piece))
			if all, err := ParseAll([]byte(text)); err == nil && len(all) == 0 {
				t.Errorf("%q: neither a dump nor an error", piece)
			}
		}
		if cost.Grows(parse) {
			t.Errorf("%q repeated four times as often takes far more than four times the work", piece)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	s := recordings(b)[0]
	data := []byte(strings.Repeat(pprint(s.Stats, "OrderedDict([", "('%s', %d)", ",\n             ", "])")+"\n"+s.Summary+"\n", 100))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := ParseAll(data); err != nil {
			b.Fatal(err)
		}
	}
}
