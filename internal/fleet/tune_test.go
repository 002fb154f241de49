//go:build linux

package fleet

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/input"
)

// Settings that 1, 2 and 4 workers try, of which one is killed meanwhile, give the
// answer of ashlar tune.
func TestTune(t *testing.T) { eachPlace(t, testTune) }

func testTune(t *testing.T, o hub.Options) {
	const file = "../../testdata/variety/compile.pickle.gz"
	ctx := t.Context()
	in, err := input.Open(ctx, file, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadTune(ctx, in, file)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(e tune.Evaluator) string {
		t.Helper()
		d, err := loaded.Ask(ctx, tune.Question{Budget: time.Hour, Evaluate: e})
		if err != nil {
			t.Fatal(err)
		}
		d.Seconds = 0
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	want := ask(nil)

	st := openStore(t, o)
	hash, err := st.AddOne(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Evaluator(hash)(ctx, &tune.Batch{}); err == nil {
		t.Error("a batch is tried though nobody works")
	}
	var workers []*process
	for _, n := range []int{1, 2, 4} {
		for len(workers) < n {
			workers = append(workers, start(t, at(o, "work")...))
		}
		for slots := 0; slots < 2*n; { // two of each worker
			if slots, err = st.slots(ctx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		var elsewhere, failed atomic.Int64
		spread := st.Evaluator(hash)
		got := ask(func(ctx context.Context, b *tune.Batch) ([]tune.Trial, error) {
			if elsewhere.Add(1) == 2 {
				workers[0].restart()
			}
			trials, err := spread(ctx, b)
			if err != nil {
				failed.Add(1)
				t.Log(err)
			}
			return trials, err
		})
		if got != want {
			t.Errorf("%d workers: got\n%s\nwant\n%s", n, got, want)
		}
		if elsewhere.Load() < 3 || failed.Load() > 0 {
			t.Errorf("%d workers: %d batches were sent, %d failed", n, elsewhere.Load(), failed.Load())
		}
	}
}
