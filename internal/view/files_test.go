package view

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// questions are all that the page asks, for a run of some events.
func questions(events int) []string {
	last := events - 1
	all := []string{
		"meta?", "curve?n=50&", "timeline?width=50&height=50&", "timeline?width=50&what=segments&color=pool&", "timeline?width=33&color=category&alive=-1&",
		"segments?event=-1&", fmt.Sprintf("segments?event=%d&", last), fmt.Sprintf("segments?event=%d&", min(last, last/2)), "stacks?peak=1&", "stacks?area=1&user=1&",
		"stacks?what=segments&", "legend?", "legend?color=lifetime&", "events?", "events?action=alloc&dir=-1&", "find?what=segment&", "find?what=alloc&dir=-1&", "at?y=0&", "stats?", "explain?",
		"matches?min=1&", "matches?never_freed=1&event=-1&x=event&", "window?", "timeline?width=50&moving=1&", "timeline?width=50&min=1GiB&only=1&",
	}
	if events > 0 { // there is no piece of nothing
		all = append(all, "between?", fmt.Sprintf("between?after=%d&", last-1))
	}
	return all
}

// Whatever the file has or lacks, each question gets an answer.
func TestEveryKindOfFile(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "variety", "*.pickle.gz"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	files = short.Files(t, files, 4)
	dir := t.TempDir()
	// A file that ends early: in the segments, in the events, before the settings.
	packed, err := os.Open(testdata("variety/ring"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range []float64{0.03, 0.3, 0.6, 0.97} {
		name := filepath.Join(dir, fmt.Sprintf("cut%d.pickle", i))
		if err := os.WriteFile(name, whole[:int(part*float64(len(whole)))], 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	// A bare list of segments, as JSON, without an event.
	bare := filepath.Join(dir, "bare.json")
	if err := os.WriteFile(bare, []byte(`[{"device": 0, "address": 140000000000000, "total_size": 2097152, "allocated_size": 1024, "active_size": 1024,
		"stream": 0, "segment_type": "small", "blocks": [{"size": 1024, "state": "active_allocated"}, {"size": 2096128, "state": "inactive"}]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	files = append(files, bare)
	var said bytes.Buffer
	c := serve(t, func(s *Server) {
		s.opts.Files = files
		s.opts.Log = func(text string) { fmt.Fprintln(&said, text) }
	})
	l := c.runs()
	for strings.Contains(fmt.Sprint(l.Runs), string(stateLoading)) {
		l = c.runsSince(l.Version)
	}
	for _, r := range l.Runs {
		if r.State != stateReady {
			t.Errorf("%s: %v", r.File, *r.Error)
			continue
		}
		for _, q := range questions(r.Events) {
			if status, _, body := c.do("GET", fmt.Sprintf("api/%srun=%d", q, r.ID), nil); status != http.StatusOK {
				t.Errorf("%s: %s: %d %s", r.Label, q, status, body)
			}
		}
		if r.Events > 0 {
			c.get(fmt.Sprintf("api/alloc?id=0&run=%d", r.ID))
		}
	}
	var s segmentMap
	c.json(fmt.Sprintf("api/segments?run=%d&event=-1", l.Runs[len(l.Runs)-1].ID), &s)
	if s.Allocated != 1024 || s.Free != 2096128 || len(s.Segments) != 1 || len(s.Segments[0].Blocks) != 2 {
		t.Errorf("a file without events: %+v", s)
	}
	if said.Len() > 0 {
		t.Errorf("%s", &said)
	}
}
