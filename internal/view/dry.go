package view

import (
	"context"
	"io"

	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// DryQuestion is what the page asks about the ledger of a dry run: the flags of
// ashlar dry, empty where nothing is said.
type DryQuestion struct {
	Name                 string // of the file
	GPU, Limit, Settings string
	Curve                int
}

// A DryAnswerer reads a ledger and returns the document of ashlar dry. The page
// without a server has none: see Options.Dry.
type DryAnswerer func(ctx context.Context, ledger io.Reader, q DryQuestion) (any, error)

// serveDry is api/dry: the body is a ledger. Nothing of it is kept.
func (s *Server) serveDry(w http.ResponseWriter, r *http.Request, q *query) error {
	if s.opts.Dry == nil {
		return refuse(http.StatusNotFound, "this page opens no ledgers: use ashlar dry")
	}
	if r.Method != http.MethodPost {
		return methodNotAllowed(w, "POST")
	}
	if err := s.ownOrigin(r); err != nil {
		return err
	}
	asked := DryQuestion{
		GPU: q.values.Get("gpu"), Limit: q.values.Get("limit"), Settings: q.values.Get("settings"),
		Curve: q.integer("curve", 0, 1, maxWidth),
	}
	if q.err != nil {
		return q.err
	}
	name, body, done, err := s.receive(w, r, q)
	if err != nil {
		return err
	}
	defer done()
	asked.Name = name
	doc, err := s.opts.Dry(r.Context(), body, asked)
	if body.err != nil {
		return body.err
	}
	if err != nil {
		return planProblem(err)
	}
	return s.sendJSON(w, doc)
}
