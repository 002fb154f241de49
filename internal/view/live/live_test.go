package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/view"
	"github.com/ashlar-mem/ashlar/internal/watch"
	"github.com/ashlar-mem/ashlar/internal/watch/watchtest"
)

// watched is a server to which four ranks have sent, of which the last stands out.
func watched(t *testing.T) Jobs {
	t.Helper()
	dir := t.TempDir()
	h, err := hub.Open(t.Context(), hub.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	rules, err := watch.ParseRules("full: reserved > 30GiB -> log")
	if err != nil {
		t.Fatal(err)
	}
	s, err := watch.NewServer(t.Context(), h, watch.Options{Keep: 24 * time.Hour, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "w.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch.Serve(ctx, l, s.Handler()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for rank := range 4 {
		one := watchtest.NewSender(socket, "run", rank)
		one.World = 4
		if rank == 3 {
			one.Change = func(sample map[string]int64) { sample["reserved"], sample["peak_reserved"] = 40<<30, 40<<30 }
		}
		for i := range 60 {
			one.Sample(time.Now().Add(time.Duration(i-60) * time.Second))
		}
		if err := one.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		one.Close()
	}
	return Jobs{s}
}

func answer[T any](t *testing.T, j Jobs, question string, q url.Values) *T {
	t.Helper()
	made, err := j.Answer(t.Context(), question, q)
	if err != nil {
		t.Fatal(err)
	}
	return made.(*T)
}

func TestAnswer(t *testing.T) {
	j := watched(t)
	st := answer[State](t, j, "", nil)
	if len(st.Jobs) != 1 || st.Jobs[0].Label != "run" || len(st.Jobs[0].Ranks) != 4 || len(st.Alarms) != 1 {
		t.Fatalf("%+v", st)
	}
	odd := st.Jobs[0].Odd
	if len(odd) != 2 || odd[0].Rank != 3 || odd[0].Measure != "peak_reserved" || odd[1].Measure != "fragmentation" {
		t.Errorf("%+v", odd)
	}
	k := answer[Sketches](t, j, "sketches", nil)
	if len(k.Jobs) != 1 || k.Jobs[0].Reserved[watch.SketchPieces-1] != 40<<10 && k.Jobs[0].Reserved[watch.SketchPieces-2] != 40<<10 {
		t.Errorf("%+v", k)
	}
	now := time.Now()
	ask := func(job, name string, back time.Duration, points int) url.Values {
		return url.Values{
			"job": {job}, "name": {name}, "points": {fmt.Sprint(points)},
			"from_us": {fmt.Sprint(now.Add(-back).UnixMicro())}, "to_us": {fmt.Sprint(now.UnixMicro())},
		}
	}
	for _, points := range []int{1, 10, 600} {
		c := answer[Curves](t, j, "curves", ask(st.Jobs[0].Key, "reserved", 10*time.Minute, points))
		if len(c.Ranks) != 4 || c.FromUS%c.PointUS != 0 {
			t.Fatalf("%d points: %+v", points, c)
		}
		for i, r := range c.Ranks {
			if n := len(r.At); n == 0 || n > points+1 || r.High[n-1] != *st.Jobs[0].Ranks[i].PeakReservedBytes {
				t.Errorf("%d points, rank %d: %+v", points, i, r)
			}
		}
	}
	if c := answer[Curves](t, j, "curves", ask("other", "reserved", time.Minute, 10)); len(c.Ranks) != 0 {
		t.Errorf("%+v", c)
	}
	if _, err := j.Answer(t.Context(), "else", nil); !errors.Is(err, view.ErrNoQuestion) {
		t.Error(err)
	}
	for _, q := range []url.Values{{}, ask("run.0", "reserved", -time.Minute, 10), ask("run.0", "reserved", time.Minute, 0), ask("run.0", "colour", time.Minute, 10)} {
		if _, err := j.Answer(t.Context(), "curves", q); err == nil {
			t.Errorf("%v is answered", q)
		}
	}
	if _, err := j.Snapshot(t.Context(), "none.pickle"); !errors.As(err, new(*view.QuestionError)) {
		t.Error(err)
	}
}
