package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// A question that takes a while can be answered in lines, with stream=1: each is
// a JSON object with one member, which says what the line is.
//
//	{"work": N}          the first one: what stops it, see stopWork
//	{"waiting": true}    something else takes all cores; this comes next
//	{"progress": {...}}  how far it is
//	{"whatif": {...}}    and others: documents, as soon as they are made
//	{"error": "..."}     why there is no answer
//	{"stopped": true}    it was stopped before there was one
//	{"end": true}        the last one
//
// Closing the connection stops the work as well.

// progress is how far work is. Those that know how much there is have a Total,
// those that have a time to spend a Budget.
type progress struct {
	Done    int     `json:"done"`
	Total   int     `json:"total,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Budget  float64 `json:"budget_seconds,omitempty"`
	What    string  `json:"what,omitempty"`
}

// lines writes the lines of an answer. It may be used by several goroutines.
type lines struct {
	mu     sync.Mutex
	w      http.ResponseWriter
	conn   *http.ResponseController
	within time.Duration // a line has to be taken
	told   time.Time     // when progress was last reported
}

// send writes one line. Whoever asked may have gone, or does not read, which ends the context: others
// wait for what this work holds.
func (l *lines) send(name string, v any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(map[string]any{name: v}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(l.within)) // not every connection can
	if _, err := l.w.Write(b.Bytes()); err == nil {
		_ = l.conn.Flush() // as above
	}
	_ = l.conn.SetWriteDeadline(time.Time{})
	return nil
}

// progress reports how far the work is, not too often.
func (l *lines) progress(p progress) {
	l.mu.Lock()
	late := time.Since(l.told) >= progressEvery
	if late {
		l.told = time.Now()
	}
	l.mu.Unlock()
	if late {
		l.send("progress", p)
	}
}

// works are the streamed answers under way.
type works struct {
	mu   sync.Mutex
	last int
	stop map[int]context.CancelFunc
}

func (w *works) add(stop context.CancelFunc) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil {
		w.stop = map[int]context.CancelFunc{}
	}
	w.last++
	w.stop[w.last] = stop
	return w.last
}

func (w *works) remove(id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.stop, id)
}

// stopWork is DELETE api/work. Work that has ended is stopped already.
func (s *Server) stopWork(w http.ResponseWriter, r *http.Request, q *query) error {
	if r.Method != http.MethodDelete {
		return methodNotAllowed(w, "DELETE")
	}
	if err := s.ownOrigin(r); err != nil {
		return err
	}
	id := q.integer("work", 0, 1, maxRuns)
	if q.err == nil && id == 0 {
		q.bad("which work? give work=NUMBER, as the first line of its answer says")
	}
	if q.err != nil {
		return q.err
	}
	s.works.mu.Lock()
	stop := s.works.stop[id]
	s.works.mu.Unlock()
	if stop != nil {
		stop()
	}
	return s.sendJSON(w, struct{}{})
}

// alone runs work that takes all cores, once no other such work runs. It calls
// waiting, which may be nil, if it has to wait.
func (s *Server) alone(ctx context.Context, waiting func(), f func() error) error {
	select {
	case s.heavy <- struct{}{}:
	default:
		if waiting != nil {
			waiting()
		}
		select {
		case s.heavy <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-s.heavy }()
	return f()
}

// answer does work about a run; it ends when the run is forgotten.
func (r *request) answer(work func(ctx context.Context, out *lines) ([]byte, error)) error {
	stream := r.query.flag("stream")
	if r.query.err != nil {
		return r.query.err
	}
	ctx, cancel := context.WithCancel(r.http.Context())
	defer cancel()
	defer context.AfterFunc(r.run.ctx, cancel)()
	return r.server.perform(ctx, r.writer, stream, work)
}

// perform does work that takes all cores and answers with the document that it
// makes. If the answer is asked for in lines, work gets them and writes its
// documents itself.
func (s *Server) perform(ctx context.Context, w http.ResponseWriter, stream bool, work func(ctx context.Context, out *lines) ([]byte, error)) error {
	if !stream {
		var body []byte
		err := s.alone(ctx, nil, func() (err error) {
			body, err = work(ctx, nil)
			return err
		})
		if err == nil {
			s.send(w, http.StatusOK, "application/json", body)
		}
		return err
	}
	return s.inLines(ctx, w, func(ctx context.Context, out *lines) error {
		return s.alone(ctx, func() { out.send("waiting", true) }, func() error {
			_, err := work(ctx, out)
			return err
		})
	})
}

// inLines answers in lines, which work writes.
func (s *Server) inLines(ctx context.Context, w http.ResponseWriter, work func(ctx context.Context, out *lines) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	id := s.works.add(cancel)
	defer s.works.remove(id)
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	out := &lines{w: w, conn: http.NewResponseController(w), within: s.grace}
	out.send("work", id)
	err := guard("the answer", func() error { return work(ctx, out) })
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		out.send("stopped", true)
	default:
		out.send("error", err.Error())
	}
	out.send("end", true)
	return nil
}
