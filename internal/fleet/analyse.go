package fleet

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

// Analyse answers the questions about a file, as the commands do; name is what
// the documents call it. The file is read once. A file that cannot be answered is
// an analysis, too; the error is that of the context.
func Analyse(ctx context.Context, path, name string) (*Analysis, error) {
	in, err := input.Open(ctx, path, input.Options{})
	if err != nil {
		return refused(ctx, err, path, name)
	}
	in.Name = name
	if in.Snapshot != nil {
		in.Snapshot.Name = name
	}
	a := &Analysis{Documents: map[string]Document{}}
	facts := readFacts(in)
	a.Row.describe(facts)
	of, err := stats.NewDocument(ctx, in, stats.Options{Device: input.AnyDevice})
	if err != nil {
		of = nil // an explanation needs none
	}
	a.Documents[statsQuestion.name] = document(of, err)
	explained, err := explainInput(ctx, in)
	a.Documents[explainQuestion.name] = document(explained, err)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		a.Row.Error = err.Error()
	}
	a.Row.Summary = answers.Summarize(of, explained, facts)
	return a, nil
}

// refused is the analysis of a file that nothing is known about.
func refused(ctx context.Context, err error, path, name string) (*Analysis, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	text := string(bytes.ReplaceAll([]byte(err.Error()), []byte(path), []byte(name)))
	return failedAnalysis(text, false), nil
}

// failedAnalysis is one without answers.
func failedAnalysis(why string, aside bool) *Analysis {
	a := &Analysis{Documents: map[string]Document{}, Row: Row{Error: why, Aside: aside}}
	for _, q := range questions {
		a.Documents[q.name] = Document{Error: why}
	}
	return a
}

func document(d any, err error) Document {
	if err == nil {
		var data []byte
		if data, err = json.Marshal(d); err == nil {
			return Document{JSON: data}
		}
	}
	return Document{Error: err.Error()}
}

func explainInput(ctx context.Context, in *input.Input) (*explain.Document, error) {
	c := explain.NewCase(input.AnyDevice.Number)
	if err := c.AddFile(ctx, in); err != nil {
		return nil, err
	}
	r, err := c.Explain(ctx)
	if err != nil {
		return nil, err
	}
	return explain.NewDocument(c, r, true), nil
}

func readFacts(in *input.Input) *recorder.Facts {
	if in.Snapshot == nil {
		return nil
	}
	return recorder.Read(in.Snapshot.Extra)
}

// describe takes from a file what it says of itself.
func (r *Row) describe(f *recorder.Facts) {
	if f == nil {
		return
	}
	r.Run, r.Attempt, r.Rank, r.World, r.Commit, r.Tags = f.Run, f.Attempt, f.Rank, f.World, f.Commit, f.Tags
}
