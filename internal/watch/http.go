package watch

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// maxBody is the longest body of a message.
const maxBody = 1 << 20

// requestTime is how long a request may take, a snapshot aside.
const requestTime = 20 * time.Second

// Handler answers the jobs, and those who ask for the state.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/hello", s.post(func(ctx context.Context, body []byte) (any, error) {
		h, err := decodeHello(body)
		if err != nil {
			return nil, err
		}
		stored, err := s.hello(ctx, h)
		return reply{Stored: stored, Ask: []ask{}}, err
	}))
	mux.HandleFunc("POST /v1/samples", s.post(func(ctx context.Context, body []byte) (any, error) {
		m, err := parseSamples(body)
		if err != nil {
			return nil, err
		}
		return s.add(ctx, m)
	}))
	mux.HandleFunc("POST /v1/result", s.post(func(ctx context.Context, body []byte) (any, error) {
		var r result
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err
		}
		return struct{}{}, s.finish(ctx, r)
	}))
	mux.HandleFunc("POST /v1/snapshot", s.postSnapshot)
	mux.HandleFunc("GET /v1/state", func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusOK, struct {
			Schema int `json:"schema"`
			Status
		}{s.opts.Schema, s.Status()})
	})
	mux.HandleFunc("GET /v1/curve", s.getCurve)
	mux.HandleFunc("GET /metrics", s.getMetrics)
	return local(mux)
}

// MetricsHandler answers Prometheus alone. With a token it answers whoever sends
// it, from anywhere.
func (s *Server) MetricsHandler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.getMetrics)
	if token == "" {
		return local(mux)
	}
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			send(w, http.StatusUnauthorized, problem{"the token is missing or wrong"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// local refuses requests of web pages: a name that resolves to this machine is in
// their Host, and browsers send Origin with what they post.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) || r.Header.Get("Origin") != "" {
			send(w, http.StatusForbidden, problem{"this server answers programs of this machine only"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

type problem struct {
	Error string `json:"error"`
}

func send(w http.ResponseWriter, code int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(document) // who has gone needs no answer
}

// minRate is how fast a body has to come on average, in bytes a second, once requestTime has passed: whoever sends is on this machine.
const minRate = 1 << 20

// paced is a body that has to come: a sender that stalls holds a connection that others lack.
type paced struct {
	io.ReadCloser
	until func(time.Time) error
	end   time.Time
	taken time.Time // when what came last was taken: what becomes of it is no time of the sender's
}

func pace(w http.ResponseWriter, body io.ReadCloser) io.ReadCloser {
	now := time.Now()
	return &paced{body, http.NewResponseController(w).SetReadDeadline, now.Add(requestTime), now}
}

func (p *paced) Read(b []byte) (int, error) {
	now := time.Now()
	p.end = p.end.Add(now.Sub(p.taken))
	if idle := now.Add(requestTime); idle.Before(p.end) { // what came fast buys no time to stall
		p.end = idle
	}
	_ = p.until(p.end) // not every connection can
	n, err := p.ReadCloser.Read(b)
	p.end = p.end.Add(time.Duration(n) * time.Second / minRate)
	p.taken = time.Now()
	if errors.Is(err, io.EOF) { // else net/http reads the rest, for as long as it may
		_ = p.until(time.Time{})
	}
	return n, err
}

// post answers a message.
func (s *Server) post(f func(ctx context.Context, body []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTime)
		defer cancel()
		body, err := io.ReadAll(http.MaxBytesReader(w, pace(w, r.Body), maxBody))
		var document any
		if err == nil {
			document, err = f(ctx, body)
		}
		if err != nil {
			s.fail(w, err)
			return
		}
		send(w, http.StatusOK, document)
	}
}

// fail answers with an error, and counts those of the sender.
func (s *Server) fail(w http.ResponseWriter, err error) {
	var long *http.MaxBytesError
	code := http.StatusBadRequest
	switch {
	case errors.As(err, &unavailable{}):
		send(w, http.StatusServiceUnavailable, problem{"the store does not answer: " + err.Error()})
		return
	case errors.Is(err, errUnknown), errors.Is(err, errNoAsk):
		send(w, http.StatusNotFound, problem{err.Error()})
		return
	case errors.As(err, &long), errors.Is(err, errTooLong):
		code = http.StatusRequestEntityTooLarge
	}
	s.mu.Lock()
	s.counts.requests++
	s.mu.Unlock()
	send(w, code, problem{err.Error()})
}

func (s *Server) postSnapshot(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	err := errTooLong
	if r.ContentLength <= s.opts.MaxSnapshot {
		err = s.takeSnapshot(r.Context(), q.Get("session"), q.Get("id"), pace(w, r.Body))
	}
	if errors.Is(err, errTooLong) { // it will not get shorter
		too := fmt.Sprintf("left out: the snapshot is larger than --max-snapshot (%s)", units.Size(uint64(s.opts.MaxSnapshot)))
		if no := s.finish(r.Context(), result{Session: q.Get("session"), ID: q.Get("id"), Result: too}); no != nil {
			err = no
		}
	}
	if err != nil {
		// A client that still sends would see a broken connection, and not the answer.
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTime)) // a wish
		io.Copy(io.Discard, r.Body)                                                // who has gone needs no answer
		w.Header().Set("Connection", "close")
		s.fail(w, err)
		return
	}
	send(w, http.StatusOK, struct{}{})
}

func (s *Server) getCurve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var failed error
	integer := func(name string, otherwise int64) int64 {
		if q.Get(name) == "" {
			return otherwise
		}
		v, err := strconv.ParseInt(q.Get(name), 10, 64)
		failed = errors.Join(failed, err)
		return v
	}
	gpu, points := integer("gpu", 0), integer("points", 1000)
	from, to := integer("from_us", 0), integer("to_us", s.opts.Now().UnixMicro()+1)
	if failed == nil && !validSession(q.Get("session")) {
		failed = errUnknown
	}
	var c Curve
	if failed == nil {
		c, failed = s.Curve(r.Context(), q.Get("session"), int(gpu), q.Get("name"), time.UnixMicro(from), time.UnixMicro(to), int(points))
	}
	if failed != nil {
		s.fail(w, failed)
		return
	}
	send(w, http.StatusOK, c)
}

func (s *Server) getMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.WriteMetrics(w) // who has gone needs no answer
}
