package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/view"
	"github.com/ashlar-mem/ashlar/internal/view/fleet"
)

// one is a source of one snapshot.
type one struct{}

func (one) Explain(context.Context, string) (*explain.Document, error) {
	return nil, errors.New("it is not asked for")
}

func (one) Open(ctx context.Context, _ string) (*input.Input, error) {
	return input.Open(ctx, "../../../testdata/variety/graphs.pickle.gz", input.Options{})
}

func entries(context.Context) ([]answers.Entry, error) {
	var out []answers.Entry
	for i := range int64(3) {
		reserved := uint64(1000 + i)
		out = append(out, answers.Entry{
			Hash: strings.Repeat(fmt.Sprint(i), 64), File: "rank.pickle", Run: "a<b", Rank: &i, Commit: "c", FirstSeenUS: i, Source: one{},
			Summary: answers.Summary{Kind: input.Snapshot, PeakReserved: &reserved, Trigger: explain.None},
		})
	}
	return out, nil
}

// The page gets every answer, and opens a file once.
func TestScreen(t *testing.T) {
	s, err := view.New(view.Options{Fleet: fleet.Files{Entries: entries}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx) }()
	defer func() { stop(); <-ended }()
	do := func(method, path string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, s.Address()+"api/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s", answer.StatusCode, body)
	}
	where := url.QueryEscape("peak_reserved_bytes > 1000")
	run := url.QueryEscape("a<b")
	for _, test := range []struct{ method, path, want string }{
		{"GET", "fleet", `200 {"files":3,"failed":0,"refused":0,"runs":[{"run":"a\u003cb","files":3,"last_us":2}],"columns":[{"name":"hash","kind":"text"},`},
		{"GET", "fleet/table?show=rank&where=" + where, `"matched":2,"total":2,"rows":[{"rank":1},{"rank":2}],"notes":[]}`},
		{"GET", "fleet/table?limit=1", `"total":3,"rows":[{"run":"a\u003cb"`},
		{"GET", "fleet/table?where=rnk", `400 {"error":"--where: character 1: there is no column \"rnk\"`},
		{"GET", "fleet/table?limit=0", `400 {"error":"limit \"0\" is no number of rows"}`},
		{"GET", "fleet/growth", `200 {"runs":[{"commits":[{"commit":"c"`},
		{"GET", "fleet/growth?run=x", `400 {"error":"there is no run \"x\"`},
		{"GET", "fleet/ranks?run=" + run, `"odd":[],"run":"a\u003cb"}`},
		{"GET", "fleet/ranks", `400 {"error":"there is no run \"\"`},
		{"GET", "fleet/causes?since=7d", `200 {"causes":[],"notes":[]}`},
		{"GET", "fleet/causes?since=x", `400 {"error":`},
		{"GET", "link?at=" + url.QueryEscape("#//fleet?where=failed"), `"ashlar fleet serve --page --at '#//fleet?where=failed'"`},
		{"GET", "runs", `"fleet":true`},
		{"GET", "fleet/nothing", `404 {"error":"there is no api/fleet/nothing"}`},
		{"POST", "fleet/growth", `405 `},
		{"GET", "fleet/open?hash=x", `405 `},
		{"POST", "fleet/open?hash=x", `400 {"error":"there is no file \"x\" in the fleet`},
		{"POST", "fleet/open?hash=" + strings.Repeat("1", 64), `200 {"runs":[1]}`},
		{"POST", "fleet/open?hash=" + strings.Repeat("1", 64), `200 {"runs":[1]}`},
		{"POST", "fleet/open?hash=" + strings.Repeat("2", 64), `200 {"runs":[2]}`},
	} {
		if got := do(test.method, test.path); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %.300s, want %s", test.method, test.path, got, test.want)
		}
	}
}

func TestNoFleet(t *testing.T) {
	failed := errors.New("the hub is gone")
	f := fleet.Files{Entries: func(context.Context) ([]answers.Entry, error) { return nil, failed }}
	if _, err := f.Answer(t.Context(), "", nil); !errors.Is(err, failed) {
		t.Error(err)
	}
	if _, err := f.Open(t.Context(), "x"); !errors.Is(err, failed) {
		t.Error(err)
	}
}
