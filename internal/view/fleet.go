package view

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// A FleetAnswerer answers about many files. The page of ashlar fleet serve has
// one: see Options.Fleet.
type FleetAnswerer interface {
	questioner
	// Open reads a file by its hash.
	Open(ctx context.Context, hash string) (*input.Input, error)
}

// serveFleet is what is under api/fleet.
func (s *Server) serveFleet(w http.ResponseWriter, r *http.Request, q *query, question string) error {
	if s.opts.Fleet == nil {
		return refuse(http.StatusNotFound, "this page shows files: ashlar fleet serve shows all of them together")
	}
	if question == "open" {
		return s.openFleet(w, r, q)
	}
	return s.serveQuestion(w, r, q, s.opts.Fleet, "fleet/"+question)
}

// openFleet is POST api/fleet/open: it lists a file of the fleet, once.
func (s *Server) openFleet(w http.ResponseWriter, r *http.Request, q *query) error {
	if r.Method != http.MethodPost {
		return methodNotAllowed(w, "POST")
	}
	if err := s.ownOrigin(r); err != nil {
		return err
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	in, err := mustBeSnapshot(s.opts.Fleet.Open(r.Context(), q.values.Get("hash")))
	if err != nil {
		return err
	}
	if ids := s.runs.ofFile(in.Name); len(ids) > 0 {
		return s.sendJSON(w, taken{Runs: ids})
	}
	return s.take(w, r, in)
}
