package view

import (
	"context"
	"fmt"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
)

// documents are what the commands say about a run. Stats and explain do not
// depend on the question, so they are made once.
type documents struct {
	stats, explain *document
}

func (s *Server) newDocuments(r *pageRun) *documents {
	return &documents{
		stats: &document{server: s, make: func(ctx context.Context) (any, error) { return s.stats(ctx, r) }},
		explain: &document{server: s, make: func(ctx context.Context) (made any, err error) {
			err = s.alone(ctx, nil, func() (err error) {
				made, err = s.explain(ctx, r)
				return err
			})
			return made, err
		}},
	}
}

// statsDocument makes the document of stats.
func statsDocument(ctx context.Context, r *pageRun) (any, error) {
	return stats.NewDocument(ctx, r.input, stats.Options{Device: r.device, Run: r.loaded})
}

// explainDocument makes the document of explain.
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

// subject is what documents about the run say that they are about.
func (r *pageRun) subject() answer.Subject {
	return answer.NewSubject(r.input.Snapshot, r.trace, r.reason)
}

// document is made once, when it is first asked for, and goes on being made if
// whoever asked goes away.
type document struct {
	server *Server
	make   func(ctx context.Context) (any, error)
	once   sync.Once
	done   chan struct{}
	made   any
	err    error
}

// begin has the document made. The context is that of the run.
func (d *document) begin(run context.Context) {
	d.once.Do(func() {
		d.done = make(chan struct{})
		begun := d.server.spawn(func() {
			defer close(d.done)
			d.err = guard("a document", func() (err error) {
				d.made, err = d.make(run)
				return err
			})
		})
		if !begun {
			d.err = context.Canceled
			close(d.done)
		}
	})
}

// wait has the document made and waits until it is.
func (d *document) wait(run context.Context) {
	d.begin(run)
	<-d.done
}

// get returns the document, as soon as it is made.
func (d *document) get(ctx, run context.Context) (any, error) {
	d.begin(run)
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
	made, err := d.get(r.r.Context(), r.run.ctx)
	if err != nil {
		return err
	}
	body, err := r.document("", made, nil)
	if err != nil {
		return err
	}
	return r.send("application/json", body)
}

// document answers with what a command says: in a line of out under a name, or
// as the command prints it if there is no out.
func (r *request) document(name string, made any, out *lines) ([]byte, error) {
	if r.sites {
		made = worded(made)
	}
	if out == nil {
		return answer.JSON(made)
	}
	return nil, out.send(name, made)
}
