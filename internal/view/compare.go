package view

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// several reads all values of run. Those of host memory and of devices have
// little in common, but that is for whoever asks to judge.
func (r *request) several() []*pageRun {
	out := []*pageRun{r.run}
	for _, text := range r.query.values["run"][1:] {
		id, err := strconv.Atoi(text)
		if err != nil {
			r.query.bad("run is %q: write numbers of runs, as api/runs lists them", text)
			return out
		}
		other, err := r.server.runs.ready(id)
		if err != nil {
			if r.query.err == nil {
				r.query.err = err
			}
			return out
		}
		out = append(out, other)
	}
	return out
}

// source is a run as package diff takes it.
func (r *pageRun) source() diff.Source {
	return diff.Source{File: r.input.Name, Run: r.loaded, Reason: r.reason, Contradictions: answer.Contradictions(r.input.Snapshot)}
}

// pair is api/pair: what changed from one run, or moment, to another.
func (r *request) pair() error {
	q := r.pairQuestion()
	if r.query.err != nil {
		return r.query.err
	}
	return r.answer(func(ctx context.Context, out *lines) ([]byte, error) {
		d, err := r.compared(ctx, q, out)
		if err != nil {
			return nil, err
		}
		return r.document("pair", diff.NewPairDocument(d, false), out)
	})
}

// pairQuestion are two runs, or one twice, and the moments of them.
type pairQuestion struct {
	runs [2]*pageRun
	at   []diff.At // none, or one of each
	key  string
}

// pairQuestion reads run, twice, and at, not at all, once or twice.
func (r *request) pairQuestion() *pairQuestion {
	runs, at := r.several(), r.query.values["at"]
	q := &pairQuestion{key: strings.Join(r.query.values["run"], ",") + " " + strings.Join(at, ",")}
	switch {
	case r.query.err != nil:
		return q
	case len(runs) != 2:
		r.query.bad("two runs are compared: give run=A&run=B, or the same one twice with two moments")
		return q
	case len(at) > 2:
		r.query.bad("%d moments are given: two can be compared", len(at))
		return q
	case runs[0] == runs[1] && len(at) != 2:
		r.query.bad("a run can be compared with itself at two moments: give at=MOMENT twice")
		return q
	}
	q.runs = [2]*pageRun(runs)
	for _, text := range at {
		m, err := diff.ParseAt(text)
		if err != nil {
			r.query.bad("%v", err)
		}
		q.at = append(q.at, m)
	}
	if len(q.at) == 1 {
		q.at = append(q.at, q.at[0])
	}
	return q
}

// pairs keeps the comparisons that were asked for last: a table and a graph are
// made of each.
type pairs struct {
	mu   sync.Mutex
	kept cache[string, *diff.Diff]
}

// compared compares the two runs of a question. It takes long the first time.
func (r *request) compared(ctx context.Context, q *pairQuestion, out *lines) (*diff.Diff, error) {
	kept := &r.server.pairs
	kept.mu.Lock()
	d, ok := kept.kept.values[q.key]
	kept.mu.Unlock()
	if ok {
		return d, nil
	}
	d, err := q.compare(ctx, out)
	if err != nil {
		return nil, err
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	return kept.kept.get(q.key, func() (*diff.Diff, error) { return d, nil })
}

func (q *pairQuestion) compare(ctx context.Context, out *lines) (*diff.Diff, error) {
	table := diff.NewTable()
	if q.runs[0] == q.runs[1] {
		sides, err := q.runs[0].sides(ctx, table, q.at, out)
		if err != nil {
			return nil, err
		}
		return table.Compare(sides[0], sides[1]), nil
	}
	var pair [2][]*diff.Side
	for i, run := range q.runs {
		at := diff.Moments(run.trace)
		if len(q.at) > 0 {
			at = q.at[i : i+1]
		}
		var err error
		if pair[i], err = run.sides(ctx, table, at, out); err != nil {
			return nil, err
		}
	}
	return table.CompareFirst(pair[0], pair[1]), nil
}

func (r *pageRun) sides(ctx context.Context, table *diff.Table, at []diff.At, out *lines) ([]*diff.Side, error) {
	sides, err := table.Sides(ctx, r.source(), at)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, badRequest("%v", err)
	}
	return sides, nil
}

// ranks is api/ranks: which of several runs is odd, and where they part.
func (r *request) ranks() error {
	runs := r.several()
	if r.query.err == nil && len(runs) < 2 {
		r.query.bad("give at least two runs, as run=A&run=B")
	}
	if r.query.err != nil {
		return r.query.err
	}
	return r.answer(func(ctx context.Context, out *lines) ([]byte, error) {
		found, err := rankAll(ctx, runs, out)
		if err != nil {
			return nil, err
		}
		return r.document("ranks", diff.NewRanksDocument(found, nil), out)
	})
}

func rankAll(ctx context.Context, runs []*pageRun, out *lines) (*diff.Ranks, error) {
	var files []string
	devices := map[string]int{}
	for _, r := range runs {
		if devices[r.input.Name]++; devices[r.input.Name] == 1 {
			files = append(files, r.input.Name)
		}
	}
	names := diff.FileNames(files)
	table := diff.NewTable()
	var ranks []*diff.Rank
	for _, r := range runs {
		name := diff.RankName(names[r.input.Name], r.trace, devices[r.input.Name])
		rank, err := table.Rank(ctx, r.source(), name)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, refuse(http.StatusUnprocessableEntity, "%s: %v", r.input.Name, err)
		}
		ranks = append(ranks, rank)
	}
	return table.Ranks(ranks), nil
}
