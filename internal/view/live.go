package view

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// A LiveAnswerer answers about jobs that run. The page of ashlar watch has one:
// see Options.Live.
type LiveAnswerer interface {
	questioner
	// Snapshot opens the snapshot of an alarm.
	Snapshot(ctx context.Context, name string) (io.Reader, error)
}

// ErrNoQuestion says that a question is not one that is answered.
var ErrNoQuestion = errors.New("there is no such question")

// serveLive is api/live, and what is under it.
func (s *Server) serveLive(w http.ResponseWriter, r *http.Request, q *query, question string) error {
	if s.opts.Live == nil {
		return refuse(http.StatusNotFound, "this page shows files: ashlar watch shows jobs that run")
	}
	if question == "open" {
		return s.openLive(w, r, q)
	}
	return s.serveQuestion(w, r, q, s.opts.Live, "live/"+question)
}

// questioner answers what a screen asks that is about no run.
type questioner interface {
	// Answer returns the document for a question, or [ErrNoQuestion].
	Answer(ctx context.Context, question string, q url.Values) (any, error)
}

// serveQuestion answers a question under the name of a screen.
func (s *Server) serveQuestion(w http.ResponseWriter, r *http.Request, q *query, of questioner, path string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return methodNotAllowed(w, "GET, HEAD")
	}
	_, question, _ := strings.Cut(path, "/")
	document, err := of.Answer(r.Context(), question, q.values)
	if errors.Is(err, ErrNoQuestion) {
		return refuse(http.StatusNotFound, "there is no api/%s", path)
	}
	if err != nil {
		return err
	}
	return s.sendJSON(w, worded(document))
}

// openLive is POST api/live/open: it lists the snapshot of an alarm, once.
func (s *Server) openLive(w http.ResponseWriter, r *http.Request, q *query) error {
	if r.Method != http.MethodPost {
		return methodNotAllowed(w, "POST")
	}
	if err := s.ownOrigin(r); err != nil {
		return err
	}
	name, err := dropName(q.values.Get("snapshot"))
	if err != nil {
		return err
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if ids := s.runs.ofFile(name); len(ids) > 0 {
		return s.sendJSON(w, taken{Runs: ids})
	}
	body, err := s.opts.Live.Snapshot(r.Context(), name)
	if err != nil {
		return err
	}
	var in *input.Input
	if in, err = mustBeSnapshot(readDropped(r.Context(), name, body, -1)); err != nil {
		return err
	}
	return s.take(w, r, in)
}

// ofFile lists the runs of a file, the one first that the commands would choose.
func (g *registry) ofFile(name string) (ids []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.entries {
		if e.File == name && e.State == stateReady {
			if e.Chosen {
				ids = slices.Insert(ids, 0, e.ID)
			} else {
				ids = append(ids, e.ID)
			}
		}
	}
	return ids
}
