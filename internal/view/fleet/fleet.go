package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/view"
)

// Files answers about the files of a fleet. It is a [view.FleetAnswerer].
type Files struct {
	// Entries returns what is known now; nobody changes it.
	Entries func(ctx context.Context) ([]answers.Entry, error)
}

// State is what the screen shows before a question is asked.
type State struct {
	Files   int              `json:"files"`
	Failed  int              `json:"failed"` // with a request that failed
	Refused int              `json:"refused"`
	Runs    []Run            `json:"runs"`    // the latest first
	Columns []answers.Column `json:"columns"` // of the table
	Show    string           `json:"show"`    // those of them that it has unless others are asked for
}

// Run is a run of the fleet.
type Run struct {
	Name   string `json:"run"`
	Files  int    `json:"files"`
	LastUS int64  `json:"last_us"`
}

// pageRows is how many rows of the table a page gets, unless it asks for fewer.
const pageRows = 1000

// Answer answers a question of the screen: "" for the state, table, growth, causes
// or ranks.
func (f Files) Answer(ctx context.Context, question string, q url.Values) (any, error) {
	entries, err := f.Entries(ctx)
	if err != nil {
		return nil, err
	}
	switch question {
	case "":
		return newState(entries), nil
	case "table":
		return queryTable(entries, q, time.Now())
	case "growth":
		return asked(answers.Growth(ctx, entries, q.Get("run")))
	case "causes":
		since, err := sinceUS(q.Get("since"), time.Now())
		if err != nil {
			return nil, &view.QuestionError{Err: err}
		}
		return answers.Causes(ctx, entries, since)
	case "ranks":
		return asked(answers.Ranks(entries, q.Get("run")))
	}
	return nil, view.ErrNoQuestion
}

// asked marks an error as that of the question: there is no such run.
func asked[T any](document T, err error) (any, error) {
	if err != nil {
		return nil, &view.QuestionError{Err: err}
	}
	return document, nil
}

// sinceUS returns the time that lies so long ago; 0 if that is not said.
func sinceUS(text string, now time.Time) (int64, error) {
	if text == "" {
		return 0, nil
	}
	d, err := answers.ParseDuration(text)
	return now.Add(-d).UnixMicro(), err
}

func queryTable(entries []answers.Entry, q url.Values, now time.Time) (any, error) {
	o := answers.QueryOptions{
		Where: q.Get("where"), GroupBy: q.Get("group_by"), Show: q.Get("show"), Sort: q.Get("sort"), Limit: pageRows, NowUS: now.UnixMicro(),
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, &view.QuestionError{Err: fmt.Errorf("limit %q is no number of rows", text)}
		}
		o.Limit = min(n, pageRows)
	}
	question, err := answers.NewQuery(o)
	if err != nil {
		return nil, &view.QuestionError{Err: err}
	}
	return question.Run(entries), nil
}

func newState(entries []answers.Entry) *State {
	s := &State{Files: len(entries), Runs: []Run{}, Columns: answers.Columns, Show: answers.UsualShow}
	at := map[string]int{}
	for i := range entries {
		e := &entries[i]
		if e.Failed() {
			s.Failed++
		}
		if e.Error != "" {
			s.Refused++
		}
		if e.Run == "" {
			continue
		}
		n, ok := at[e.Run]
		if !ok {
			n = len(s.Runs)
			at[e.Run], s.Runs = n, append(s.Runs, Run{Name: e.Run})
		}
		s.Runs[n].Files++
		s.Runs[n].LastUS = max(s.Runs[n].LastUS, e.TimeUS())
	}
	slices.SortFunc(s.Runs, func(a, b Run) int { return cmp.Or(cmp.Compare(b.LastUS, a.LastUS), cmp.Compare(a.Name, b.Name)) })
	return s
}

// Open reads a file. Its name gets the beginning of its hash: the ranks of all runs
// may call their files the same.
func (f Files) Open(ctx context.Context, hash string) (*input.Input, error) {
	entries, err := f.Entries(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(entries, func(e answers.Entry) bool { return e.Hash == hash })
	if i < 0 {
		return nil, &view.QuestionError{Err: fmt.Errorf("there is no file %.80q in the fleet: it may have been removed since", hash)}
	}
	in, err := entries[i].Source.Open(ctx, hash)
	if err != nil {
		return nil, err
	}
	in.Name = fmt.Sprintf("%s (%.8s)", entries[i].File, hash)
	if in.Snapshot != nil {
		in.Snapshot.Name = in.Name
	}
	return in, nil
}
