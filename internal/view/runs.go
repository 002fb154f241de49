package view

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// maxRuns is the largest number that a run can have.
const maxRuns = 1 << 30

// runState says how far a run is.
type runState string

const (
	stateLoading runState = "loading"
	stateReady   runState = "ready"
	stateFailed  runState = "failed"
)

// listing is a run as the page lists it.
type listing struct {
	ID       int      `json:"id"`
	File     string   `json:"file"`
	Device   *int     `json:"device"`
	Host     bool     `json:"host"`
	Chosen   bool     `json:"chosen"` // the device that the commands would choose
	Label    string   `json:"label"`
	State    runState `json:"state"`
	Read     int64    `json:"read_bytes"`
	Size     int64    `json:"file_bytes"`
	Events   int      `json:"events"`
	Rank     *int64   `json:"rank"` // of the process, as the recorder wrote it
	OOMs     int      `json:"ooms"` // failed requests
	LastOOM  *int     `json:"last_oom"`
	WentOn   bool     `json:"went_on"` // something was allocated after it
	Error    *string  `json:"error"`
	Dropped  bool     `json:"dropped"`
	Warnings []string `json:"warnings"`
}

// entry is a run, or a file of which the devices are not known yet.
type entry struct {
	listing
	run *pageRun // once it is ready
}

// registry is the list of runs. Its version changes with every change.
type registry struct {
	mu      sync.Mutex
	entries []*entry
	last    int // number given out
	version int
	changed chan struct{} // is closed at the next change
	told    time.Time     // when progress was last reported
}

func newRegistry() *registry { return &registry{changed: make(chan struct{}), version: 1} }

// change makes a change known. The lock must be held.
func (g *registry) change() {
	g.version++
	close(g.changed)
	g.changed = make(chan struct{})
	g.label()
}

// announce lists a file that will be read.
func (g *registry) announce(file string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	g.entries = append(g.entries, &entry{listing: listing{ID: g.last, File: file, State: stateLoading, Warnings: []string{}}})
	g.change()
}

// progressEvery is how often the page gets to know how much of a file is read.
const progressEvery = 100 * time.Millisecond

// progress sets how much of a file is read, by the number of its entry.
func (g *registry) progress(id int, read, size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := g.find(id); i >= 0 {
		g.entries[i].Read, g.entries[i].Size = read, size
		if time.Since(g.told) >= progressEvery {
			g.told = time.Now()
			g.change()
		}
	}
}

// failed says why a file cannot be shown.
func (g *registry) failed(id int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := g.find(id); i >= 0 {
		text := err.Error()
		g.entries[i].State, g.entries[i].Error = stateFailed, &text
		g.change()
	}
}

// replace puts the runs of a file in the place of its entry; without an entry,
// id 0, behind all others.
func (g *registry) replace(id int, dropped bool, runs []*pageRun) []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.find(id)
	if at < 0 {
		at = len(g.entries)
	} else {
		g.entries = slices.Delete(g.entries, at, at+1)
	}
	ids := make([]int, len(runs))
	for i, r := range runs {
		if i == 0 && id > 0 {
			ids[i] = id
		} else {
			g.last++
			ids[i] = g.last
		}
		g.entries = slices.Insert(g.entries, at+i, &entry{r.listing(ids[i], dropped), r})
	}
	g.change()
	return ids
}

// find returns the position of a run, or -1. The lock must be held.
func (g *registry) find(id int) int {
	return slices.IndexFunc(g.entries, func(e *entry) bool { return e.ID == id })
}

// ready returns a run that can be asked.
func (g *registry) ready(id int) (*pageRun, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id == 0 {
		return nil, badRequest("which run? give run=NUMBER, as api/runs lists them")
	}
	i := g.find(id)
	if i < 0 {
		return nil, refuse(http.StatusNotFound, "there is no run %d: api/runs lists those there are", id)
	}
	switch e := g.entries[i]; e.State {
	case stateLoading:
		return nil, refuse(http.StatusConflict, "%s is still being read: wait until api/runs says ready", e.File)
	case stateFailed:
		return nil, refuse(http.StatusConflict, "%s", *e.Error)
	default:
		return e.run, nil
	}
}

// forget drops a run that came with a request.
func (g *registry) forget(id int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := g.find(id)
	switch {
	case i < 0:
		return refuse(http.StatusNotFound, "there is no run %d: api/runs lists those there are", id)
	case !g.entries[i].Dropped:
		return refuse(http.StatusConflict, "%s was given on the command line: only dropped files can be forgotten", g.entries[i].File)
	}
	g.entries[i].run.end()
	g.entries = slices.Delete(g.entries, i, i+1)
	g.change()
	return nil
}

// runList is the answer about all runs.
type runList struct {
	Version int       `json:"version"`
	Runs    []listing `json:"runs"`
	Live    bool      `json:"live"`  // there is the screen Live
	Fleet   bool      `json:"fleet"` // there is the screen Fleet
}

func (g *registry) list() (runList, chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := runList{Version: g.version, Runs: []listing{}}
	for _, e := range g.entries {
		l.Runs = append(l.Runs, e.listing)
	}
	return l, g.changed
}

// pollTime is how long an answer waits for something to change.
const pollTime = 20 * time.Second

// listAfter waits until the version differs from the given one, and lists the runs.
func (g *registry) listAfter(ctx context.Context, version int) (runList, error) {
	timer := time.NewTimer(pollTime)
	defer timer.Stop()
	for {
		l, changed := g.list()
		if l.Version != version {
			return l, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return l, nil
		case <-ctx.Done():
			return l, ctx.Err()
		}
	}
}

// label gives the runs short, distinct names. The lock must be held.
func (g *registry) label() {
	var files []string
	devices := map[string]int{}
	for _, e := range g.entries {
		files = append(files, e.File)
		devices[e.File]++
	}
	names := diff.FileNames(files)
	seen := map[string]int{}
	for _, e := range g.entries {
		label := names[e.File]
		switch {
		case e.Host:
			label += " host memory"
		case devices[e.File] > 1 && e.Device != nil:
			label += fmt.Sprintf(" device %d", *e.Device)
		}
		if seen[label]++; seen[label] > 1 {
			label += fmt.Sprintf(" (%d)", seen[label])
		}
		e.Label = label
	}
}

// serveRuns is api/runs.
func (s *Server) serveRuns(w http.ResponseWriter, r *http.Request, q *query) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		since := q.integer("since", -1, 0, maxRuns)
		if q.err != nil {
			return q.err
		}
		l, err := s.runs.listAfter(r.Context(), since)
		if err != nil {
			return err
		}
		l.Live, l.Fleet = s.opts.Live != nil, s.opts.Fleet != nil
		return s.sendJSON(w, l)
	case http.MethodPost:
		if err := s.ownOrigin(r); err != nil {
			return err
		}
		return s.drop(w, r, q)
	case http.MethodDelete:
		if err := s.ownOrigin(r); err != nil {
			return err
		}
		id := q.integer("run", 0, 1, maxRuns)
		if q.err == nil && id == 0 {
			q.bad("which run? give run=NUMBER")
		}
		if q.err != nil {
			return q.err
		}
		if err := s.runs.forget(id); err != nil {
			return err
		}
		return s.sendJSON(w, struct{}{})
	}
	return methodNotAllowed(w, "GET, HEAD, POST, DELETE")
}

// maxName is the longest name of a dropped file, as file systems have it.
const maxName = 255

// dropName checks the name of a dropped file. It is shown and nothing else.
func dropName(name string) (string, error) {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", badRequest("give the name of the file, at most %d bytes without control characters, as name=NAME", maxName)
	}
	return name, nil
}

// receive returns the file that is the body of a request, and what to call when
// it was read: a few are at a time, so that memory lasts.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, q *query) (name string, body *cappedBody, done func(), err error) {
	if kind := r.Header.Get("Content-Type"); kind != "application/octet-stream" {
		return "", nil, nil, refuse(http.StatusUnsupportedMediaType, "the body is %q: send the bytes of the file as application/octet-stream", kind)
	}
	if name, err = dropName(q.values.Get("name")); err != nil {
		return "", nil, nil, err
	}
	if r.ContentLength > s.opts.MaxBytes {
		return "", nil, nil, &http.MaxBytesError{Limit: s.opts.MaxBytes}
	}
	defer s.coming.Add(-1)
	if s.coming.Add(1) > mostComing {
		return "", nil, nil, refuse(http.StatusServiceUnavailable, "%d files come at once already: send this one again later", mostComing)
	}
	body = s.capped(w, r, s.opts.MaxBytes)
	if err := body.begin(); err != nil {
		return "", nil, nil, err
	}
	s.queued.Add(1)
	defer s.queued.Add(-1)
	select {
	case s.reading <- struct{}{}:
	case <-r.Context().Done():
		return "", nil, nil, r.Context().Err()
	}
	body.crowded = func() bool { return s.queued.Load() > 0 }
	return name, body, func() { <-s.reading }, nil
}

// drop reads a file from the body of a request.
func (s *Server) drop(w http.ResponseWriter, r *http.Request, q *query) error {
	name, body, done, err := s.receive(w, r, q)
	if err != nil {
		return err
	}
	defer done()
	in, err := readDropped(r.Context(), name, body, r.ContentLength)
	if body.err != nil { // whatever the reader made of it
		return body.err
	}
	if err != nil {
		return err
	}
	if in.Kind != input.Snapshot {
		return s.explainText(w, r, in)
	}
	return s.take(w, r, in)
}

// taken is the answer to a file: its runs or, of a text, what ashlar explain says.
type taken struct {
	Runs    []int `json:"runs"`
	Explain any   `json:"explain,omitempty"`
}

// take lists the runs of a file that came with a request.
func (s *Server) take(w http.ResponseWriter, r *http.Request, in *input.Input) error {
	runs, err := s.newRuns(r.Context(), in)
	if err != nil {
		return err
	}
	ids := s.runs.replace(0, true, runs)
	if s.listener != nil { // else there is one core, and the page asks at once
		for _, run := range runs {
			s.prepare(run)
		}
	}
	return s.sendJSON(w, taken{Runs: ids})
}

// explainText answers with what a log, a message or a dump of memory_stats() says.
func (s *Server) explainText(w http.ResponseWriter, r *http.Request, in *input.Input) error {
	c := explain.NewCase(input.AnyDevice.Number)
	if err := c.AddFile(r.Context(), in); err != nil {
		return err
	}
	report, err := c.Explain(r.Context())
	if err != nil {
		return err
	}
	return s.sendJSON(w, taken{[]int{}, worded(explain.NewDocument(c, report, true))})
}

// serveSample is POST api/sample: it lists the sample run.
func (s *Server) serveSample(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return methodNotAllowed(w, "POST")
	}
	if err := s.ownOrigin(r); err != nil {
		return err
	}
	if len(sample) == 0 {
		return refuse(http.StatusNotFound, "this page has no sample run")
	}
	in, err := readDropped(r.Context(), sampleName, bytes.NewReader(sample), int64(len(sample)))
	if err != nil {
		return err
	}
	return s.take(w, r, in)
}
