package view

import (
	"context"
	"fmt"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// documents are the answers of commands about a run that do not depend on the
// question.
type documents struct {
	stats, explain *document
}

func (s *Server) newDocuments(r *pageRun) *documents {
	return &documents{
		stats: &document{server: s, build: func(ctx context.Context) (any, error) { return s.stats(ctx, r) }},
		explain: &document{server: s, build: func(ctx context.Context) (made any, err error) {
			err = s.alone(ctx, nil, func() (err error) {
				made, err = s.explain(ctx, r)
				return err
			})
			return made, err
		}},
	}
}

// statsDocument builds the document of stats.
func statsDocument(ctx context.Context, r *pageRun) (any, error) {
	return stats.NewDocument(ctx, r.input, stats.Options{Device: r.device, Run: r.loaded})
}

// fixPoints is how long the curves of fixes are: the recorded part of them has
// about a point for each pixel that the page draws.
const fixPoints = 4000

// explainDocument builds the document of explain.
func explainDocument(ctx context.Context, r *pageRun) (any, error) {
	if r.device.Host {
		return nil, fmt.Errorf("%s: host memory has another allocator, which Ashlar does not explain", r.input.Name)
	}
	c := explain.NewCase(r.device.Number)
	c.Loaded, c.Points = r.loaded, fixPoints
	if err := c.AddFile(ctx, r.input); err != nil {
		return nil, err
	}
	report, err := c.Explain(ctx)
	if err != nil {
		return nil, err
	}
	return explain.NewDocument(c, report, true), nil
}

// subject names the run in documents about it.
func (r *pageRun) subject() answer.Subject {
	return answer.NewSubject(r.input.Snapshot, r.trace, r.reason)
}

// document is built once, when it is first requested. If everybody who requested
// it leaves before it is there, building it ends; the next request begins anew.
type document struct {
	server *Server
	build  func(ctx context.Context) (any, error)

	mu      sync.Mutex
	waiting int     // requests
	now     *making // nil: not begun
}

// making is one attempt at a document.
type making struct {
	cancel context.CancelFunc
	done   chan struct{}
	made   any
	err    error
}

// get returns the document as soon as it is built. The run's context ends when
// the run is forgotten.
func (d *document) get(ctx, run context.Context) (any, error) {
	d.mu.Lock()
	if d.now == nil {
		d.now = d.begin(run)
	}
	m := d.now
	d.waiting++
	d.mu.Unlock()
	defer d.leave(m)
	select {
	case <-m.done:
		return m.made, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *document) begin(run context.Context) *making {
	ctx, cancel := context.WithCancel(run)
	m := &making{cancel: cancel, done: make(chan struct{})}
	begun := d.server.spawn(func() {
		defer close(m.done)
		m.err = guard("a document", func() (err error) {
			m.made, err = d.build(ctx)
			return err
		})
	})
	if !begun {
		m.err = context.Canceled
		close(m.done)
	}
	return m
}

// leave ends an attempt that nobody waits for any more.
func (d *document) leave(m *making) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting--; d.waiting > 0 {
		return
	}
	select {
	case <-m.done:
	default:
		m.cancel()
		d.now = nil
	}
}

func (r *request) stats() error { return r.kept(r.run.documents.stats) }

// explain is api/explain. In lines, too, so that it can be stopped.
func (r *request) explain() error {
	stream := r.query.flag("stream")
	if r.query.err != nil {
		return r.query.err
	}
	if !stream {
		return r.kept(r.run.documents.explain)
	}
	return r.server.inLines(r.http.Context(), r.writer, func(ctx context.Context, out *lines) error {
		made, err := r.run.documents.explain.get(ctx, r.run.ctx)
		if err == nil {
			_, err = r.document("explain", made, out)
		}
		return err
	})
}

// fixCurve are the totals along a run with a changed program.
type fixCurve struct {
	Event    []int    `json:"event"` // at the end of each piece
	Reserved []uint64 `json:"reserved_bytes"`
	Active   []uint64 `json:"active_bytes"`
}

// fix is api/fix: the curve of a fix of the explanation.
func (r *request) fix() error {
	i := r.query.integer("fix", 0, 0, maxRuns)
	if r.query.err != nil {
		return r.query.err
	}
	made, err := r.run.documents.explain.get(r.http.Context(), r.run.ctx)
	if err != nil {
		return err
	}
	d, _ := made.(*explain.Document)
	if d == nil || i >= len(d.Fixes) || len(d.Fixes[i].Curve) == 0 {
		return refuse(http.StatusNotFound, "there is no curve of fix %d: only changes of the program that were replayed have one", i)
	}
	var c fixCurve
	for _, p := range d.Fixes[i].Curve {
		if p.Event >= r.run.events() { // continued
			break
		}
		c.Event = append(c.Event, p.Event)
		c.Reserved = append(c.Reserved, p.Reserved)
		c.Active = append(c.Active, p.Active)
	}
	return r.json(c)
}

func (r *request) kept(d *document) error {
	made, err := d.get(r.http.Context(), r.run.ctx)
	if err != nil {
		return err
	}
	body, err := r.document("", made, nil)
	if err != nil {
		return err
	}
	return r.send("application/json", body)
}

// document writes the document of a command: as a line of out under a name, or as
// the command prints it if out is nil.
func (r *request) document(name string, made any, out *lines) ([]byte, error) {
	if r.sites {
		made = worded(made)
	}
	if out == nil {
		return answer.JSON(made)
	}
	return nil, out.send(name, made)
}
