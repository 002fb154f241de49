package view

import (
	"context"
	"fmt"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
)

// documents are the answers of commands about a run. Stats and explain do not
// depend on the question, so each is built once.
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

// explainDocument builds the document of explain.
func explainDocument(ctx context.Context, r *pageRun) (any, error) {
	if r.device.Host {
		return nil, fmt.Errorf("%s: host memory has another allocator, which Ashlar does not explain", r.input.Name)
	}
	c := explain.NewCase(r.device.Number)
	c.Loaded = r.loaded
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

// document is built once, when it is first requested, even if that request is
// cancelled.
type document struct {
	server *Server
	build  func(ctx context.Context) (any, error)
	once   sync.Once
	done   chan struct{}
	made   any
	err    error
}

// start starts building the document. The context is that of the run.
func (d *document) start(run context.Context) {
	d.once.Do(func() {
		d.done = make(chan struct{})
		begun := d.server.spawn(func() {
			defer close(d.done)
			d.err = guard("a document", func() (err error) {
				d.made, err = d.build(run)
				return err
			})
		})
		if !begun {
			d.err = context.Canceled
			close(d.done)
		}
	})
}

// wait starts building the document and waits until it is done.
func (d *document) wait(run context.Context) {
	d.start(run)
	<-d.done
}

// get returns the document as soon as it is built.
func (d *document) get(ctx, run context.Context) (any, error) {
	d.start(run)
	select {
	case <-d.done:
		return d.made, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *request) stats() error { return r.kept(r.run.documents.stats) }

func (r *request) explain() error { return r.kept(r.run.documents.explain) }

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
