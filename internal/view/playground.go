package view

import (
	"encoding/json"
	"errors"
	"mime"

	"github.com/ashlar-mem/ashlar/internal/playground"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// maxExperiment is the size of the largest question about an experiment: its
// lines at their longest, and some marks.
const maxExperiment = playground.MaxLines*(playground.MaxLength+8) + 1024

// lessons is what the page needs to offer experiments.
type lessons struct {
	Version   int                     `json:"version"`
	MaxLines  int                     `json:"max_lines"`
	MaxBytes  uint64                  `json:"max_bytes"`
	MaxStream int                     `json:"max_stream"`
	Device    string                  `json:"default_device"`
	List      []playground.Experiment `json:"experiments"`
	Exercises []playground.Exercise   `json:"exercises"`
}

// experiment is a question: lines to play and after which step to look.
type experiment struct {
	Version int      `json:"version"`
	Lines   []string `json:"lines"`
	At      *int     `json:"at"` // missing: after the last one

	Exercise string   `json:"exercise"` // instead of Lines: answers to its questions
	Answers  []string `json:"answers"`
}

// grades are the verdicts on answers to an exercise.
type grades struct {
	Verdicts []playground.Verdict `json:"verdicts"`
}

// servePlayground is api/playground. It needs no run and changes nothing; the
// lines are in the body because they do not fit an address.
func (s *Server) servePlayground(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return s.sendJSON(w, lessons{
			playground.Version, playground.MaxLines, playground.MaxBytes, playground.MaxStream,
			playground.DefaultDevice, playground.Experiments(), playground.Exercises(),
		})
	case http.MethodPost:
		if err := s.ownOrigin(r); err != nil {
			return err
		}
		q, err := s.readExperiment(w, r)
		if err != nil {
			return err
		}
		if q.Exercise != "" {
			verdicts, err := playground.Grade(r.Context(), q.Exercise, q.Answers)
			if err != nil {
				return &QuestionError{err}
			}
			return s.sendJSON(w, grades{verdicts})
		}
		at := playground.End
		if q.At != nil {
			if at = *q.At; at < 0 {
				return badRequest("there is no step %d", at) // playground.End is no number of a step
			}
		}
		answer, err := playground.Play(r.Context(), q.Lines, at)
		if err != nil {
			return &QuestionError{err}
		}
		return s.sendJSON(w, answer)
	}
	return methodNotAllowed(w, "GET, HEAD, POST")
}

func (s *Server) readExperiment(w http.ResponseWriter, r *http.Request) (*experiment, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "send the experiment as application/json")
	}
	body, err := s.capped(w, r, maxExperiment).readAll()
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the experiment is larger than %s", units.Size(maxExperiment))
	}
	if err != nil {
		return nil, err
	}
	var q experiment
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, badRequest("the experiment cannot be read: %v", err)
	}
	if q.Version != playground.Version {
		return nil, badRequest("the experiment is of version %d; this ashlar plays version %d: use the one that made the link", q.Version, playground.Version)
	}
	return &q, nil
}
