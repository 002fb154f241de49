package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Files come up one after the other; broken ones say why.
func TestRuns(t *testing.T) {
	c := serve(t, func(s *Server) { s.opts.Files = append(s.opts.Files, "testdata/none.pickle") }, "variety/graphs", "snapshots/gpt2_fixed-default")
	l := c.runs()
	if len(l.Runs) != 3 || l.Runs[0].State != stateReady || !l.Runs[0].Chosen || l.Runs[2].State != stateFailed || l.Runs[2].Error == nil {
		t.Fatalf("%+v", l)
	}
	if l.Runs[0].Label != "graphs.pickle.gz" || l.Runs[1].Label != "gpt2_fixed-default.pickle.gz" || *l.Runs[0].Device != 0 || l.Runs[0].Events != 105 {
		t.Errorf("%+v", l.Runs)
	}
	status, _, body := c.do("GET", "api/meta?run=3", nil)
	refused(t, "a failed run", http.StatusConflict, status, body)

	// What is dropped comes behind, and can be forgotten.
	data, err := os.ReadFile(testdata("variety/midrun"))
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan runList)
	go func() { changed <- c.runsSince(l.Version) }()
	status, _, body = c.do("POST", "api/runs?name=dir/midrun.pickle.gz", bytes.NewReader(data), "Content-Type", "application/octet-stream", "Origin", "http://"+c.s.hosts[0])
	var ids struct{ Runs []int }
	if err := json.Unmarshal(body, &ids); status != http.StatusOK || err != nil || !slices.Equal(ids.Runs, []int{4}) {
		t.Fatalf("%d %s", status, body)
	}
	after := <-changed
	if n := len(after.Runs); n != 4 || !after.Runs[3].Dropped || after.Runs[3].File != "midrun.pickle.gz" || after.Runs[3].Size != int64(len(data)) {
		t.Fatalf("%+v", after)
	}
	c.get("api/meta?run=4")
	if status, _, body := c.do("DELETE", "api/runs?run=4", nil); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	status, _, body = c.do("GET", "api/meta?run=4", nil)
	refused(t, "forgotten", http.StatusNotFound, status, body)
}

func TestLabels(t *testing.T) {
	g := newRegistry()
	for _, f := range []string{"a/rank0.pickle", "b/rank0.pickle", "b/rank1.pickle", "b/rank1.pickle", "mon/0/oom.pickle", "tue/0/oom.pickle"} {
		g.announce(f)
	}
	l, _ := g.list()
	var labels []string
	for _, r := range l.Runs {
		labels = append(labels, r.Label)
	}
	if want := []string{"a/rank0.pickle", "b/rank0.pickle", "rank1.pickle", "rank1.pickle (2)", "mon/0/oom.pickle", "tue/0/oom.pickle"}; !slices.Equal(labels, want) {
		t.Errorf("%q, want %q", labels, want)
	}
}

// A file of several devices is several runs; each device that has something.
func TestDevices(t *testing.T) {
	c := serve(t, func(s *Server) {
		s.opts.Files = []string{"two"}
		s.open = func(ctx context.Context, file string, progress func(read, total int64)) (*input.Input, error) {
			in, err := input.Open(ctx, testdata("variety/graphs"), input.Options{})
			if err != nil {
				return nil, err
			}
			second := *in.Snapshot.Traces[0]
			second.Device = 3
			host := *in.Snapshot.Traces[0]
			host.Host = true
			empty := &trace.Trace{Device: 1, Strings: second.Strings, Stacks: second.Stacks}
			in.Snapshot = &snapshot.File{Name: "two", Traces: []*trace.Trace{in.Snapshot.Traces[0], empty, &second}, Host: &host}
			in.Name = "two"
			return in, nil
		}
	})
	var l runList
	for len(l.Runs) < 3 {
		l = c.runsSince(l.Version)
	}
	if len(l.Runs) != 3 || l.Runs[0].ID != 1 || *l.Runs[1].Device != 3 || l.Runs[2].Device != nil || !l.Runs[2].Host || l.Runs[1].Label != "two device 3" ||
		l.Runs[2].Label != "two host memory" {
		t.Fatalf("%+v", l.Runs)
	}
	for id, want := range []string{`"device": 0`, `"device": 3`, `"device": -1`} {
		if body := string(c.get(fmt.Sprintf("api/stats?run=%d", id+1))); !strings.Contains(body, want) {
			t.Errorf("run %d: %s", id+1, body)
		}
	}
}

// slow makes explain documents when it is told to.
type slow struct {
	begun, go_ chan struct{}
	ended      chan struct{} // nil, or gets those that were cancelled
	mu         sync.Mutex
	made       int
}

func (s *slow) explain(ctx context.Context, r *pageRun) (any, error) {
	s.mu.Lock()
	s.made++
	s.mu.Unlock()
	s.begun <- struct{}{}
	select {
	case <-s.go_:
		return struct{ Cause string }{"none"}, nil
	case <-ctx.Done():
		if s.ended != nil {
			s.ended <- struct{}{}
		}
		return nil, ctx.Err()
	}
}

// The explanation is made when it is asked for, and once.
func TestExplainIsMadeOnce(t *testing.T) {
	docs := &slow{begun: make(chan struct{}, 9), go_: make(chan struct{})}
	c := serve(t, func(s *Server) { s.explain = docs.explain }, "variety/graphs")
	c.get("api/stats?run=1")
	c.get("api/meta?run=1")
	if len(docs.begun) > 0 {
		t.Error("it was made without being asked for")
	}
	close(docs.go_)
	for range 3 {
		c.get("api/explain?run=1")
	}
	if docs.made != 1 {
		t.Errorf("made %d times", docs.made)
	}
}

// Who leaves lets the others wait; when the last one leaves, the work ends, and
// the next one begins anew.
func TestExplainEndsWhenNobodyWaits(t *testing.T) {
	docs := &slow{begun: make(chan struct{}), go_: make(chan struct{}), ended: make(chan struct{}, 9)}
	c := serve(t, func(s *Server) { s.explain = docs.explain }, "variety/graphs")
	ask := func(path string) (leave context.CancelFunc, left chan struct{}) {
		ctx, cancel := context.WithCancel(t.Context())
		left = make(chan struct{})
		go func() {
			defer close(left)
			r, _ := http.NewRequestWithContext(ctx, "GET", c.base+path, nil)
			if reply, err := http.DefaultTransport.RoundTrip(r); err == nil {
				io.Copy(io.Discard, reply.Body)
				reply.Body.Close()
			}
		}()
		return cancel, left
	}
	leave, left := ask("api/explain?run=1")
	<-docs.begun
	d := c.s.runs.entries[0].run.documents.explain
	second, secondLeft := ask("api/explain?run=1&stream=1")
	for waiting := 0; waiting < 2; time.Sleep(time.Millisecond) {
		d.mu.Lock()
		waiting = d.waiting
		d.mu.Unlock()
	}
	leave()
	<-left
	select {
	case <-docs.ended:
		t.Error("one left, and the other waits in vain")
	default:
	}
	// The other one is stopped as the page's button does it.
	if status, _, body := c.do("DELETE", "api/work?work=1", nil); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	<-docs.ended
	<-secondLeft
	second()
	close(docs.go_)
	go func() { <-docs.begun }()
	c.get("api/explain?run=1")
	if docs.made != 2 {
		t.Errorf("made %d times", docs.made)
	}
}

// Ending the server ends what it is doing.
func TestEndWhileBusy(t *testing.T) {
	docs := &slow{begun: make(chan struct{}), go_: make(chan struct{})}
	c := serve(t, func(s *Server) { s.explain = docs.explain }, "variety/graphs")
	go func() {
		if reply, err := http.Get(c.base + "api/explain?run=1"); err == nil {
			reply.Body.Close()
		}
	}()
	<-docs.begun
	version := c.runs().Version
	go func() {
		reply, err := http.Get(fmt.Sprint(c.base, "api/runs?since=", version)) // a poll under way
		if err == nil {
			reply.Body.Close()
		}
	}()
	time.Sleep(20 * time.Millisecond)
}

func TestBusyPort(t *testing.T) {
	c := serve(t, nil)
	var port int
	fmt.Sscanf(c.s.hosts[0], "127.0.0.1:%d", &port)
	_, err := New(Options{Port: port})
	var busy *PortError
	if !errors.As(err, &busy) || busy.Port != port || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// Many ask at once, for everything.
func TestConcurrent(t *testing.T) {
	c := serve(t, nil, "snapshots/streams_graphs-tight-default", "variety/expand_tight")
	data, err := os.ReadFile(testdata("variety/graphs"))
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{
		"meta?", "curve?n=200&", "timeline?width=400&height=300&", "timeline?width=300&x=time&stack=forward&color=category&", "segments?event=300&", "stacks?peak=1&user=1&",
		"stacks?area=1&", "events?count=50&stack=forward&", "events?count=50&action=oom&", "find?what=segment&", "alloc?id=5&", "legend?color=pool&", "stats?", "explain?", "whatif?set=&", "segments?set=expandable_segments:True&",
	}
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 0))
			for range 40 {
				path := fmt.Sprintf("api/%srun=%d", paths[rng.IntN(len(paths))], 1+rng.IntN(2))
				if status, _, body := c.do("GET", path, nil); status != http.StatusOK {
					t.Errorf("%s: %d %s", path, status, body)
				}
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			_, _, body := c.do("POST", "api/runs?name=dropped", bytes.NewReader(data), "Content-Type", "application/octet-stream")
			var ids struct{ Runs []int }
			if json.Unmarshal(body, &ids); len(ids.Runs) != 1 {
				t.Errorf("%s", body)
				return
			}
			c.get(fmt.Sprintf("api/timeline?run=%d", ids.Runs[0]))
			c.do("DELETE", fmt.Sprintf("api/runs?run=%d", ids.Runs[0]), nil)
		}
	})
	wg.Wait()
}

// A fault in the work on one file does not end the page.
func TestFaults(t *testing.T) {
	var mu sync.Mutex
	var said []string
	c := serve(t, func(s *Server) {
		s.stats = func(context.Context, *pageRun) (any, error) { panic("a mistake") }
		s.opts.Files = append(s.opts.Files, "odd")
		s.open = func(ctx context.Context, file string, progress func(read, total int64)) (*input.Input, error) {
			if file == "odd" {
				panic("another mistake")
			}
			return s.openFile(ctx, file, progress)
		}
		s.opts.Log = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, text)
		}
	}, "variety/graphs")
	status, _, body := c.do("GET", "api/stats?run=1", nil)
	refused(t, "a document that cannot be made", http.StatusUnprocessableEntity, status, body)
	c.get("api/meta?run=1")
	l := c.runs()
	for l.Runs[1].State == stateLoading {
		l = c.runsSince(l.Version)
	}
	if l.Runs[1].State != stateFailed {
		t.Errorf("%+v", l.Runs[1])
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) != 1 || !strings.Contains(said[0], "another mistake") {
		t.Errorf("said %q", said)
	}
}
