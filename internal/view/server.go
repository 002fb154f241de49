package view

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// Options say what to serve.
type Options struct {
	Port  int       // 0 takes one that is free
	Token string    // see CheckToken; empty: a random one
	Files []string  // read in this order
	Stdin io.Reader // the file "-"; must end with the context
	// Log gets what the user should know besides what the page shows; may be nil.
	Log func(text string)
	// MaxBytes is the size of the largest file that can be dropped; 0 stands for
	// DefaultMaxBytes.
	MaxBytes int64
	// Dry answers about ledgers of dry runs; nil: the page opens none.
	Dry DryAnswerer
	// Live answers about jobs that run; nil: the page has no screen Live.
	Live LiveAnswerer
	// Fleet answers about many files; nil: the page has no screen Fleet.
	Fleet FleetAnswerer
}

// DefaultMaxBytes is the size of the largest file that can be dropped onto the
// page.
const DefaultMaxBytes = 4 << 30

// Server is the server of one page.
type Server struct {
	opts     Options
	listener listener // nil: nobody can connect, see NewLocal
	token    string
	hosts    [2]string
	files    map[string][]byte
	runs     *registry
	works    works
	pairs    pairs
	// How files are read and the documents made that do not depend on the
	// question; tests put others in their place.
	open    func(ctx context.Context, file string, progress func(read, total int64)) (*input.Input, error)
	stats   func(ctx context.Context, r *pageRun) (any, error)
	explain func(ctx context.Context, r *pageRun) (any, error)

	heavy   chan struct{}   // held while a document is made that takes all cores
	reading chan struct{}   // held while a dropped file is read
	coming  atomic.Int64    // files that do not have it yet
	queued  atomic.Int64    // those of them whose first bytes have come
	opening sync.Mutex      // held while the snapshot of an alarm is read
	grace   time.Duration   // for a file to come, and for a line of an answer to be taken
	ctx     context.Context // ends with the server

	mu     sync.Mutex
	ending bool // nothing new is started
	work   sync.WaitGroup
}

// spawn runs f in the background, unless the server is ending; it reports whether
// it did.
func (s *Server) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ending {
		s.work.Go(f)
	}
	return !s.ending
}

// waitForWork lets no more work start and waits for what runs in the background.
func (s *Server) waitForWork() {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.work.Wait()
}

// newServer makes a server that has read nothing yet.
func newServer(o Options) *Server {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	s := &Server{
		opts: o, runs: newRegistry(), heavy: make(chan struct{}, 1), reading: make(chan struct{}, 2), grace: bodyTime,
		stats: statsDocument, explain: explainDocument,
	}
	s.open = s.openFile
	return s
}

// load begins to read the files. Everything that the server starts ends with the
// context.
func (s *Server) load(ctx context.Context) {
	s.ctx = ctx
	for _, file := range s.opts.Files {
		s.runs.announce(file)
	}
	s.spawn(func() { s.loadAll(ctx) })
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	defer func() {
		if p := recover(); p != nil {
			s.opts.Log(fmt.Sprintf("a fault in ashlar, please report it: %s: %v", r.URL.Path[min(len(r.URL.Path), len(s.token)+1):], p))
			s.fail(w, r, refuse(http.StatusInternalServerError, "a fault in ashlar: %v", p))
		}
	}()
	path, err := s.enter(r)
	if err == nil {
		err = s.answer(w, r, path)
	}
	if err != nil {
		s.fail(w, r, err)
	}
}

// answer goes to what a path behind the token stands for.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, path string) error {
	if path == "" {
		w.Header().Set("Location", "/"+s.token+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
	name, api := strings.CutPrefix(path, "/api/")
	if !api {
		return s.page(w, r, path[1:])
	}
	q, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	switch name { // what is about no run
	case "runs":
		return s.serveRuns(w, r, q)
	case "sample":
		return s.serveSample(w, r)
	case "link":
		return s.serveLink(w, r, q)
	case "playground":
		return s.servePlayground(w, r)
	case "plan":
		return s.servePlan(w, r, q)
	case "dry":
		return s.serveDry(w, r, q)
	case "work":
		return s.stopWork(w, r, q)
	}
	if question, live := strings.CutPrefix(name+"/", "live/"); live {
		return s.serveLive(w, r, q, strings.TrimSuffix(question, "/"))
	}
	if question, fleet := strings.CutPrefix(name+"/", "fleet/"); fleet {
		return s.serveFleet(w, r, q, strings.TrimSuffix(question, "/"))
	}
	f, ok := answers[name]
	if !ok {
		return refuse(http.StatusNotFound, "there is no api/%s", name)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return methodNotAllowed(w, "GET, HEAD")
	}
	id, sites := q.integer("run", 0, 0, maxRuns), q.flag("sites")
	if q.err != nil {
		return q.err
	}
	ready, err := s.runs.ready(id)
	if err != nil {
		return err
	}
	return f(&request{s, ready, q, sites, w, r})
}

// request is a question about a run.
type request struct {
	server *Server
	run    *pageRun
	query  *query
	sites  bool // documents of commands have their stacks as text
	writer http.ResponseWriter
	http   *http.Request
}

// answers are the functions behind the paths of the API.
var answers = map[string]func(*request) error{
	"stats":    (*request).stats,
	"explain":  (*request).explain,
	"fix":      (*request).fix,
	"export":   (*request).export,
	"whatif":   (*request).whatif,
	"tune":     (*request).tune,
	"pair":     (*request).pair,
	"changes":  (*request).changes,
	"ranks":    (*request).ranks,
	"meta":     (*request).meta,
	"between":  (*request).between,
	"check":    (*request).check,
	"matches":  (*request).matching,
	"window":   (*request).windows,
	"curve":    (*request).curve,
	"timeline": (*request).timeline,
	"at":       (*request).allocAt,
	"alloc":    (*request).alloc,
	"segments": (*request).segments,
	"stacks":   (*request).stacks,
	"legend":   (*request).legend,
	"events":   (*request).events,
	"find":     (*request).find,
}

func (r *request) json(v any) error { return r.server.sendJSON(r.writer, v) }

func (r *request) send(kind string, body []byte) error {
	r.server.send(r.writer, http.StatusOK, kind, body)
	return nil
}
