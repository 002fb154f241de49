package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// problem is an answer that says why there is no other.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func refuse(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// badRequest is for parameters that cannot be used.
func badRequest(format string, args ...any) error {
	return refuse(http.StatusBadRequest, format, args...)
}

// QuestionError marks an error as the fault of the question: the
// answer is then "bad request", otherwise that the file cannot be worked with.
type QuestionError struct{ Err error }

func (e *QuestionError) Error() string { return e.Err.Error() }

func (e *QuestionError) Unwrap() error { return e.Err }

// fail answers a request with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusUnprocessableEntity
	var (
		known    *problem
		question *QuestionError
		tooLarge *http.MaxBytesError
	)
	switch {
	case errors.As(err, &known):
		status = known.status
	case errors.As(err, &question):
		status = http.StatusBadRequest
	case errors.As(err, &tooLarge):
		status = http.StatusRequestEntityTooLarge
		err = fmt.Errorf("the file is larger than %d bytes: give it on the command line instead", tooLarge.Limit)
	case r.Context().Err() != nil, errors.Is(err, context.Canceled):
		status = http.StatusServiceUnavailable
		err = errors.New("the server is shutting down, or the question was withdrawn")
	}
	body, _ := json.Marshal(struct { // a text always can be
		Error string `json:"error"`
	}{err.Error()})
	s.send(w, status, "application/json", append(body, '\n'))
}

// send writes a whole answer.
func (s *Server) send(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	w.Write(body) // whoever asked may have gone
}

// sendJSON writes a document.
func (s *Server) sendJSON(w http.ResponseWriter, v any) error {
	body, err := jsonLine(v)
	if err != nil {
		return err
	}
	s.send(w, http.StatusOK, "application/json", body)
	return nil
}

// jsonLine is a document on one line.
func jsonLine(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	return append(body, '\n'), err
}

// guard turns a panic in work on a file into an error: one odd file must not end
// the page of the others.
func guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: a fault in ashlar, please report it: %v", what, p)
		}
	}()
	return f()
}
