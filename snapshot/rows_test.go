package snapshot

import (
	"fmt"
	"strings"
	"testing"
)

// A table takes as many rows as there are, and finds each again.
func TestRows(t *testing.T) {
	var r rows[int]
	const n = 1<<20 + 1
	for i := range n {
		if got := r.add(i); got != i {
			t.Fatalf("row %d was added as %d", i, got)
		}
	}
	for i := range n {
		if got := *r.row(i); got != i {
			t.Fatalf("row %d holds %d", i, got)
		}
	}
	for _, first := range []int{0, 15, 16, 8175, 212_975, n - 5000} {
		for i, got := range r.slice(first, 5000) {
			if got != first+i {
				t.Fatalf("row %d in the slice from %d holds %d", first+i, first, got)
			}
		}
	}
	for i, c := range r.chunks {
		if cap(c) < 16 || cap(c) > 4096 {
			t.Fatalf("chunk %d has room for %d rows", i, cap(c))
		}
	}
}

// Files with very many of each thing are read whole.
func TestManyRows(t *testing.T) {
	const n = 300_000
	list := func(item string) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	segment := func(blocks string) string {
		return `{"address":0,"total_size":` + fmt.Sprint(512*n) + `,"blocks":` + blocks + `}`
	}
	for name, tt := range map[string]struct {
		data string
		got  func(f *File) int
	}{
		"segments": {
			`{"segments":` + list(`{"address":0,"total_size":512,"blocks":[]}`) + `}`,
			func(f *File) int { return len(f.Traces[0].Segments) },
		},
		"blocks": {
			`{"segments":[` + segment(list(`{"size":512,"state":"inactive"}`)) + `]}`,
			func(f *File) int { return len(f.Traces[0].Segments[0].Blocks) },
		},
		"history": {
			`{"segments":[` + segment(`[{"size":512,"state":"inactive","history":`+list(`{"addr":0,"real_size":1}`)+`}]`) + `]}`,
			func(f *File) int { return len(f.Traces[0].Segments[0].Blocks[0].History) },
		},
		"annotations": {
			`{"segments":[` + segment("[]") + `],"external_annotations":` + list(`{"stage":"START","name":"n"}`) + `}`,
			func(f *File) int { return len(f.Traces[0].Annotations) },
		},
		"events": {
			`{"device_traces":[` + list(`{"action":"alloc","addr":0,"size":512}`) + `]}`,
			func(f *File) int { return f.Traces[0].Events.Len() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := read1([]byte(tt.data))
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.got(f); got != n {
				t.Errorf("%d were read, want %d", got, n)
			}
		})
	}
}
