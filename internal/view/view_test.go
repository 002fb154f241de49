package view

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/input"
)

// about says what a document was asked for.
type about struct {
	File   string `json:"file"`
	Device int    `json:"device"`
}

// stub makes documents that say what they were asked for.
func stub(ctx context.Context, r *pageRun) (any, error) {
	return about{filepath.Base(r.input.Name), r.device.Number}, nil
}

func testdata(name string) string { return filepath.Join("..", "..", "testdata", name+".pickle.gz") }

// loadRun makes the run of a file without a server.
func loadRun(t testing.TB, name string) *pageRun {
	t.Helper()
	in, err := input.Open(t.Context(), testdata(name), input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := in.Snapshot.Pick(-1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRun(t.Context(), in, tr, input.AnyDevice)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// client asks a server.
type client struct {
	t    testing.TB
	s    *Server
	base string
}

// serve starts a server for files of testdata, and waits until they are read.
func serve(t testing.TB, change func(*Server), files ...string) *client {
	t.Helper()
	var o Options
	for _, f := range files {
		o.Files = append(o.Files, testdata(f))
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.stats, s.explain = stub, stub
	if change != nil {
		change(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute): // it hangs
			t.Error("the server does not end")
		}
	})
	c := &client{t, s, s.Address()}
	for l := c.runs(); len(l.Runs) < len(files) || strings.Contains(fmt.Sprint(l.Runs), string(stateLoading)); {
		l = c.runsSince(l.Version)
	}
	return c
}

func (c *client) runs() runList { return c.runsSince(-1) }

func (c *client) runsSince(version int) (l runList) {
	c.t.Helper()
	path := "api/runs"
	if version >= 0 {
		path += fmt.Sprint("?since=", version)
	}
	c.json(path, &l)
	return l
}

// do sends a request and returns status, headers and body.
func (c *client) do(method, path string, body io.Reader, headers ...string) (int, http.Header, []byte) {
	c.t.Helper()
	r, err := http.NewRequest(method, c.base+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	reply, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer reply.Body.Close()
	out, err := io.ReadAll(reply.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply.StatusCode, reply.Header, out
}

// get asks for something that must be there.
func (c *client) get(path string) []byte {
	c.t.Helper()
	status, _, body := c.do("GET", path, nil)
	if status != http.StatusOK {
		c.t.Fatalf("%s: %d %s", path, status, body)
	}
	return body
}

func (c *client) json(path string, to any) {
	c.t.Helper()
	if err := json.Unmarshal(c.get(path), to); err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
}

// refused checks that a request gets a status and a sentence.
func refused(t *testing.T, what string, want, status int, body []byte) {
	t.Helper()
	var said struct{ Error string }
	if err := json.Unmarshal(body, &said); status != want || err != nil || said.Error == "" {
		t.Errorf("%s: %d %q, want %d and a sentence", what, status, body, want)
	}
}
