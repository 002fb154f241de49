package view

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// jobs answers as ashlar watch does, with what it was asked.
type jobs struct{ opened int }

func (*jobs) Answer(_ context.Context, question string, q url.Values) (any, error) {
	switch question {
	case "", "curves":
		return map[string]string{"question": question, "job": q.Get("job")}, nil
	case "wrong":
		return nil, &QuestionError{errors.New("it is wrong")}
	}
	return nil, ErrNoQuestion
}

func (j *jobs) Snapshot(_ context.Context, name string) (io.Reader, error) {
	j.opened++
	switch name {
	case "a.pickle":
		return os.Open("../../testdata/variety/stateonly.pickle.gz")
	case "text.pickle":
		return strings.NewReader("CUDA out of memory. Tried to allocate 2.00 GiB."), nil
	}
	return nil, &QuestionError{errors.New("there is no such snapshot")}
}

// Questions about running jobs go to whoever answers them, and the snapshot of an
// alarm becomes a run, once.
func TestLive(t *testing.T) {
	j := &jobs{}
	c := serve(t, func(s *Server) { s.opts.Live = j })
	var l runList
	if c.json("api/runs", &l); !l.Live {
		t.Error("the page does not know that there are jobs")
	}
	for _, tt := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "api/live?job=x", http.StatusOK, `"job":"x","question":""`},
		{"GET", "api/live/curves", http.StatusOK, `"question":"curves"`},
		{"GET", "api/live/wrong", http.StatusBadRequest, "it is wrong"},
		{"GET", "api/live/else", http.StatusNotFound, "api/live/else"},
		{"GET", "api/lively", http.StatusNotFound, "api/lively"},
		{"POST", "api/live", http.StatusMethodNotAllowed, ""},
		{"GET", "api/live/open?snapshot=a.pickle", http.StatusMethodNotAllowed, ""},
		{"POST", "api/live/open?snapshot=a.pickle", http.StatusOK, `{"runs":[1]}`},
		{"POST", "api/live/open?snapshot=a.pickle", http.StatusOK, `{"runs":[1]}`},
		{"POST", "api/live/open", http.StatusBadRequest, "name"},
		{"POST", "api/live/open?snapshot=none", http.StatusBadRequest, "no such snapshot"},
		{"POST", "api/live/open?snapshot=text.pickle", http.StatusUnprocessableEntity, "not a memory snapshot"},
	} {
		if status, _, reply := c.do(tt.method, tt.path, nil); status != tt.status || !strings.Contains(string(reply), tt.want) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, reply)
		}
	}
	if j.opened != 3 {
		t.Errorf("snapshots were read %d times", j.opened)
	}
	if status, _, _ := c.do("POST", "api/live/open?snapshot=a.pickle", nil, "Origin", "http://elsewhere.example"); status != http.StatusForbidden {
		t.Errorf("another page's question: %d", status)
	}
	var command link
	if c.json("api/link?at="+url.QueryEscape("#//live?job=a.0"), &command); command.Command != "ashlar watch --at '#//live?job=a.0'" {
		t.Error(command)
	}
	c.s.opts.Live = nil
	if status, _, reply := c.do("GET", "api/live", nil); status != http.StatusNotFound || !strings.Contains(string(reply), "ashlar watch") {
		t.Errorf("without jobs: %d %s", status, reply)
	}
}
