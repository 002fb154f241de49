package plan

import (
	"context"
	"sync"
)

// variants are the plans of a job with other options. Levers share them: several
// together often come to what another one is alone.
type variants struct {
	mu    sync.Mutex
	known map[string]*planned // by the options
	kept  int                 // events of the runs in known
}

// maxKept is how many events known may have: an event takes a hundred bytes or more.
// What is not kept is planned again where it is asked for again.
const maxKept = 500_000

// plan returns the plan of some options.
func (v *variants) plan(ctx context.Context, q *Question, o Options) (*planned, error) {
	p, err := v.find(ctx, q, o)
	if err != nil || p.figures != nil {
		return p, err
	}
	full, err := q.planRun(ctx, p.job, p.run, 0)
	if err == nil {
		v.keep(o, full)
	}
	return full, err
}

// tooLarge reports whether a job requests more than there is. That needs no
// engine. It says no where the job cannot be planned.
func (v *variants) tooLarge(ctx context.Context, q *Question, o Options) (*planned, bool) {
	p, err := v.find(ctx, q, o)
	if err != nil {
		return nil, false
	}
	available := q.Capacity.available(groupOf(p.job))
	return p, available > 0 && uint64(p.run.ledger.Peak()) > available
}

// find returns what is known of some options, at least a run without figures.
func (v *variants) find(ctx context.Context, q *Question, o Options) (*planned, error) {
	v.mu.Lock()
	p := v.known[o.String()]
	v.mu.Unlock()
	if p != nil {
		return p, nil
	}
	j, _, err := o.Job(q.Model)
	if err != nil {
		return nil, err
	}
	run, err := q.run(ctx, j)
	if err != nil {
		return nil, err
	}
	p = &planned{question: q, job: j, run: run}
	v.keep(o, p)
	return p, nil
}

func (v *variants) keep(o Options, p *planned) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.known = map[string]*planned{}
	}
	name, events := o.String(), len(p.run.ledger.Events)
	if before := v.known[name]; before != nil {
		events -= len(before.run.ledger.Events) // mostly all of them: the same run, now with its figures
	}
	if v.kept+events <= maxKept {
		v.known[name] = p
		v.kept += events
	}
}
