package answers_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/test/planted"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

const testdata = "../../../testdata"

var whole = flag.String("fleet", "", "look for what is planted in a whole fleet; JSON with parameters that differ from the usual ones, such as {\"Seed\": 2}")

// folder is a Source over a folder of files; documents are kept as JSON, as a
// store does it.
type folder struct {
	dir       string
	explained [][]byte
}

func (f *folder) Explain(_ context.Context, hash string) (*explain.Document, error) {
	d := new(explain.Document)
	return d, json.Unmarshal(f.explained[f.index(hash)], d)
}

func (f *folder) index(hash string) (i int) {
	fmt.Sscanf(hash, "%d ", &i)
	return i
}

func (f *folder) Open(ctx context.Context, hash string) (*input.Input, error) {
	_, name, _ := strings.Cut(hash, " ")
	return input.Open(ctx, filepath.Join(f.dir, name), input.Options{})
}

// analysed makes the entries of a fleet. The hash is the number and the path.
func analysed(t *testing.T, dir string, truth *planted.Truth) []answers.Entry {
	t.Helper()
	from := &folder{dir, make([][]byte, len(truth.Files))}
	out := make([]answers.Entry, len(truth.Files))
	err := parallel.Each(t.Context(), 0, len(out), func(i int) error {
		f := truth.Files[i]
		e := answers.Entry{
			Hash: fmt.Sprintf("%d %s", i, f.Path), File: f.Path, Run: f.Run, Attempt: &f.Attempt, Rank: &f.Rank, World: &f.World, Commit: f.Commit,
			FirstSeenUS: int64(i), Source: from,
		}
		in, err := from.Open(t.Context(), e.Hash)
		if err != nil {
			return err
		}
		s, x, err := documents(t.Context(), in)
		if err != nil {
			return err
		}
		if from.explained[i], err = answer.JSON(x); err != nil {
			return err
		}
		e.Summary = answers.Summarize(s, x, recorder.Read(in.Snapshot.Extra))
		out[i] = e
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// documents are those of stats and explain.
func documents(ctx context.Context, in *input.Input) (*stats.Document, *explain.Document, error) {
	s, err := stats.NewDocument(ctx, in, stats.Options{Device: input.AnyDevice})
	if err != nil {
		return nil, nil, err
	}
	c := explain.NewCase(-1)
	if err := c.AddFile(ctx, in); err != nil {
		return nil, nil, err
	}
	r, err := c.Explain(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s, explain.NewDocument(c, r, true), nil
}

// small is a fleet for every run of the tests.
func small() planted.Params {
	p := planted.Usual()
	p.Files, p.Runs, p.Ranks, p.Commits = 60, 2, 16, 8
	p.Bases = []string{"advice/llama_adam", "advice/ddp_buckets"}
	p.Failures = []string{"advice/vit_batch", "advice/huge_vocab", "advice/gradient_statistics", "advice/segmentation_preds", "advice/side_stream"}
	return p
}

// Every planted commit and rank is named and no other, and failures of one cause
// are together; the order of the entries does not matter.
func TestPlanted(t *testing.T) {
	p := small()
	if *whole != "" {
		p = planted.Usual()
		if err := json.Unmarshal([]byte(*whole), &p); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	truth, err := planted.Write(t.Context(), testdata, dir, p)
	if err != nil {
		t.Fatal(err)
	}
	if *whole == "" && (len(truth.Grown) == 0 || len(truth.Odd) == 0 || len(truth.Causes) != p.Causes) {
		t.Fatalf("planted: %d commits, %d ranks, %d causes", len(truth.Grown), len(truth.Odd), len(truth.Causes))
	}
	t.Logf("%d files; planted: %d commits, %d ranks, %d causes", len(truth.Files), len(truth.Grown), len(truth.Odd), len(truth.Causes))
	entries := analysed(t, dir, truth)
	first := ask(t, entries, truth)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	if second := ask(t, entries, truth); first != second {
		t.Error("the answers depend on the order of the entries")
	}
}

// ask asks all questions, compares the answers with the truth, and returns them.
func ask(t *testing.T, entries []answers.Entry, truth *planted.Truth) string {
	t.Helper()
	var given planted.Answers
	var err error
	if given.Growth, err = answers.Growth(t.Context(), entries, ""); err != nil {
		t.Fatal(err)
	}
	for _, run := range truth.Runs() {
		ranks, err := answers.Ranks(entries, run)
		if err != nil {
			t.Fatal(err)
		}
		given.Ranks = append(given.Ranks, ranks)
	}
	if given.Causes, err = answers.Causes(t.Context(), entries, 0); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range truth.Check(&given) {
		t.Error(wrong)
	}
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
