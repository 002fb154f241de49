package view

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
)

// The graph has every byte of both sides, under any folding: none is lost, none
// is counted twice.
func TestChanges(t *testing.T) {
	c := serve(t, nil, "snapshots/leak_graph-default", "snapshots/leak_graph-tight-default", "variety/nocontext")
	for _, pair := range []string{"run=1&run=2", "run=2&run=1", "run=1&run=1&at=peak&at=end", "run=1&run=3", "run=1&run=2&at=end"} {
		var d diff.Diff
		c.json("api/pair?"+pair, &d)
		if d.ABytes == 0 || d.BBytes == 0 || len(d.Stacks) == 0 {
			t.Fatalf("%s: %+v", pair, d)
		}
		for _, how := range []string{"", "&user=1", "&width=change", "&width=change&user=1"} {
			var got changeTree
			c.json("api/changes?"+pair+how, &got)
			if got.A != d.ABytes || got.B != d.BBytes {
				t.Errorf("%s%s: %d and %d, the pair has %d and %d", pair, how, got.A, got.B, d.ABytes, d.BBytes)
			}
			var a, b, width uint64
			for _, n := range got.Nodes {
				if n.Depth == 0 {
					a, b, width = a+n.A, b+n.B, width+n.Bytes
				}
			}
			if width != got.Total {
				t.Errorf("%s%s: the roots are %d wide of %d", pair, how, width, got.Total)
			}
			larger, change := d.ABytes, uint64(0) // stacks that are the same are not listed
			for _, s := range d.Stacks {
				larger += max(s.ABytes, s.BBytes) - s.ABytes
				change += max(s.ABytes, s.BBytes) - min(s.ABytes, s.BBytes)
			}
			if strings.Contains(how, "change") {
				// What did not change at all is not there; what is, is with all its bytes.
				if got.Total != change || int64(b-a) != d.Delta || a > d.ABytes {
					t.Errorf("%s%s: %d wide, %d and %d bytes; want %d and a difference of %d", pair, how, got.Total, a, b, change, d.Delta)
				}
				continue
			}
			if got.Total != larger || a != d.ABytes || b != d.BBytes {
				t.Errorf("%s%s: %d wide, %d and %d bytes; want %d, %d and %d", pair, how, got.Total, a, b, larger, d.ABytes, d.BBytes)
			}
		}
	}
}

func TestRanks(t *testing.T) {
	c := serve(t, nil, "snapshots/leak_graph-default", "snapshots/leak_graph-tight-default", "variety/graphs")
	var plain diff.Ranks
	c.json("api/ranks?run=1&run=2&run=3", &plain)
	if len(plain.Ranks) != 3 || plain.Ranks[1].Name != "leak_graph-tight-default.pickle.gz" || plain.Divergence == nil || len(plain.Measures) == 0 {
		t.Fatalf("%+v", plain)
	}
	var streamed diff.Ranks
	var order []string
	c.lines("api/ranks?run=1&run=2&run=3&stream=1", func(l line) bool {
		for name, data := range l {
			if order = append(order, name); name == "ranks" {
				streamed = read[diff.Ranks](t, data)
			}
		}
		return true
	})
	want, _ := json.Marshal(plain)
	got, _ := json.Marshal(streamed)
	if d := cmp.Diff(string(want), string(got)); d != "" || order[len(order)-1] != "end" || !slices.Contains(order, "ranks") {
		t.Errorf("%q\n%s", order, d)
	}
}

func TestCompareRefuses(t *testing.T) {
	c := serve(t, nil, "variety/graphs", "variety/stateonly")
	for path, want := range map[string]string{
		"pair?run=1":                                "two runs are compared",
		"pair?run=1&run=2&run=1":                    "two runs are compared",
		"pair?run=1&run=1":                          "at two moments",
		"pair?run=1&run=1&at=peak":                  "at two moments",
		"pair?run=1&run=2&at=x":                     "write peak, start, end",
		"pair?run=1&run=2&at=end&at=end&at=end":     "3 moments",
		"pair?run=1&run=2&at=9999":                  "there is no event 9,999",
		"pair?run=1&run=2&at=peak":                  "there are no events",
		"pair?run=1&run=x":                          "numbers of runs",
		"changes?run=1&run=2&width=nonsense":        "larger, change",
		"ranks?run=1":                               "at least two",
		"ranks?run=1&run=2&stream=maybe":            "stream is",
		"changes?run=1&run=1&at=0&at=1&stream=nope": "stream is",
	} {
		status, _, body := c.do("GET", "api/"+path, nil)
		refused(t, path, http.StatusBadRequest, status, body)
		if !strings.Contains(string(body), want) || strings.Contains(string(body), "--") {
			t.Errorf("%s: %s, want %s", path, body, want)
		}
	}
	status, _, body := c.do("GET", "api/pair?run=1&run=7", nil)
	refused(t, "a run that is not there", http.StatusNotFound, status, body)
}
