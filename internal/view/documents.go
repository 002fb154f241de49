package view

import (
	"context"
	"sync"
)

// documents are what the commands say about a run. Stats and explain do not
// depend on the question, so they are made once.
type documents struct {
	stats, explain *document
}

func (s *Server) newDocuments(r *pageRun) *documents {
	docs := s.opts.Documents
	return &documents{
		stats: &document{server: s, make: func(ctx context.Context) ([]byte, error) {
			return docs.Stats(ctx, r.input, r.device, r.loaded)
		}},
		explain: &document{server: s, make: func(ctx context.Context) (body []byte, err error) {
			err = s.alone(ctx, nil, func() (err error) {
				body, err = docs.Explain(ctx, r.input, r.device, r.loaded)
				return err
			})
			return body, err
		}},
	}
}

// document is made once, when it is first asked for, and goes on being made if
// whoever asked goes away.
type document struct {
	server *Server
	make   func(ctx context.Context) ([]byte, error)
	once   sync.Once
	done   chan struct{}
	body   []byte
	err    error
}

// begin has the document made. The context is that of the run.
func (d *document) begin(run context.Context) {
	d.once.Do(func() {
		d.done = make(chan struct{})
		begun := d.server.spawn(func() {
			defer close(d.done)
			d.err = guard("a document", func() (err error) {
				d.body, err = d.make(run)
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
func (d *document) get(ctx, run context.Context) ([]byte, error) {
	d.begin(run)
	select {
	case <-d.done:
		return d.body, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *request) stats() error { return r.document(r.run.documents.stats) }

func (r *request) explain() error { return r.document(r.run.documents.explain) }

func (r *request) document(d *document) error {
	body, err := d.get(r.r.Context(), r.run.ctx)
	if err != nil {
		return err
	}
	return r.send("application/json", body)
}
