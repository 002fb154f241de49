package view

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/trace"
)

// A piece of a run changes what diff finds between its ends, stack by stack.
func TestBetween(t *testing.T) {
	c := serve(t, nil, "snapshots/leak_graph-tight-default")
	r, err := c.s.runs.ready(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range [][2]int{{-1, r.events() - 1}, {1000, 5000}, {r.events() - 3, r.events() - 2}} {
		var got between
		c.json(fmt.Sprintf("api/between?run=1&after=%d&until=%d", p[0], p[1]), &got)
		at := fmt.Sprint(p[0])
		if p[0] < 0 {
			at = diff.Start.String()
		}
		var want diff.Diff
		if err := json.Unmarshal(c.get(fmt.Sprintf("api/pair?run=1&run=1&at=%s&at=%d", at, p[1])), &want); err != nil {
			t.Fatal(err)
		}
		if got.Before.Active != want.ABytes || got.End.Active != want.BBytes || got.All.Delta != want.Delta || got.Events != p[1]-p[0] {
			t.Errorf("%v: %+v, want %d to %d", p, got.All, want.ABytes, want.BBytes)
		}
		sum := int64(0)
		for _, f := range got.Categories {
			sum += f.Delta
		}
		if sum != want.Delta || got.Peak.Active < max(got.Before.Active, got.End.Active) || got.All.Peak.Bytes != got.Peak.Active {
			t.Errorf("%v: categories change by %d, the whole by %d; peak %+v", p, sum, want.Delta, got.Peak)
		}
		changes := map[[2]uint64]int{} // of stacks with these bytes
		for _, s := range want.Stacks {
			changes[[2]uint64{s.ABytes, s.BBytes}]++
		}
		for i, s := range got.Stacks {
			if s.Delta == 0 {
				continue // diff lists what changed
			}
			if k := [2]uint64{s.Before.Bytes, s.End.Bytes}; changes[k] == 0 {
				t.Errorf("%v: %s goes from %d to %d, which no stack of diff does", p, s.Site, k[0], k[1])
			} else {
				changes[k]--
			}
			if i > 0 && abs(s.Delta) > abs(got.Stacks[i-1].Delta) {
				t.Errorf("%v: row %d is larger than the one before", p, i)
			}
		}
		checkAlone(t, c, p, got.Stacks)
		if top := got.Stacks[0].Delta; len(want.Stacks) > 0 && top != want.Stacks[0].Delta {
			t.Errorf("%v: the largest change is %d, diff has %d", p, top, want.Stacks[0].Delta)
		}
	}
	var some between
	c.json("api/between?run=1&after=1000&until=5000&stack=linear", &some)
	if some.All.End.Bytes == 0 || some.All.End.Bytes >= some.End.Active {
		t.Errorf("a filter leaves %d of %d bytes", some.All.End.Bytes, some.End.Active)
	}
	for _, path := range []string{"like=-1", fmt.Sprint("like=", r.lives.Len()), "after=5&until=5", "after=9&until=3", "after=-2", "until=x", fmt.Sprintf("until=%d", r.events())} {
		status, _, body := c.do("GET", "api/between?run=1&"+path, nil)
		refused(t, path, 400, status, body)
	}
}

// checkAlone checks that the block of a stack chooses this stack alone, also where
// stacks share a colour.
func checkAlone(t *testing.T, c *client, p [2]int, stacks []stackFlow) {
	t.Helper()
	for _, s := range stacks {
		var alone between
		c.json(fmt.Sprintf("api/between?run=1&after=%d&until=%d&like=%d", p[0], p[1], s.Alloc), &alone)
		if len(alone.Stacks) != 1 || alone.Stacks[0] != s || alone.All != s.flow {
			t.Errorf("%v: like=%d chooses %+v, want %+v alone", p, s.Alloc, alone.Stacks, s)
		}
	}
}

func TestCompareCommand(t *testing.T) {
	r := loadRun(t, "snapshots/leak_graph-tight-default")
	r.input.Name = "a b/it's.pickle"
	if got, want := r.compareCommand(-1, 20), `ashlar diff 'a b/it'\''s.pickle' --at start --at 20`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r.input.Name, r.device.Host = "run-1.pickle", true
	if got, want := r.compareCommand(7, 20), "ashlar diff run-1.pickle --at 7 --at 20 --device host"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func abs(n int64) int64 { return max(n, -n) }

// What passes a filter is counted as a walk over all blocks counts it.
func TestMatches(t *testing.T) {
	c := serve(t, nil, "snapshots/streams_graphs-tight-default")
	r, err := c.s.runs.ready(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"stack=forward", "min=1MiB", "never_freed=1", "like=7", "color=category&pick=1", "stack=nowhere"} {
		for _, event := range []int{-1, r.events() / 3, r.events() - 1} {
			for _, x := range []string{"event", "time"} {
				checkMatches(t, c, r, fmt.Sprintf("%s&event=%d&x=%s", query, event, x), event)
			}
		}
	}
}

func checkMatches(t *testing.T, c *client, r *pageRun, query string, event int) {
	t.Helper()
	var got matchSums
	c.json("api/matches?run=1&n=300&"+query, &got)
	q, err := parseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	chosen := (&request{run: r, query: q}).selection(r.blocks())
	want := matchSums{Event: event}
	live := make([]uint64, r.events()+1)
	for i := range r.lives.Len() {
		if !chosen.has(i) {
			continue
		}
		want.Blocks++
		want.Bytes += r.lives.Size[i]
		born := int(r.lives.Born[i])
		if born < event && born >= 0 {
			want.Previous = &born
		}
		if born > event && want.Next == nil {
			want.Next = &born
		}
		for e := born; e < min(int(r.lives.Gone[i]), r.events()); e++ {
			live[e+1] += r.lives.Size[i]
		}
	}
	for e, bytes := range live {
		if bytes > want.Most {
			want.Most, want.MostEvent = bytes, unless(false, e-1)
		}
	}
	want.Now = live[event+1]
	text := func(n *int) string {
		if n == nil {
			return "none"
		}
		return fmt.Sprint(*n)
	}
	most := uint64(0)
	for _, m := range got.Marks {
		most = max(most, m)
	}
	if got.Blocks != want.Blocks || got.Bytes != want.Bytes || got.Most != want.Most || got.Now != want.Now || text(got.MostEvent) != text(want.MostEvent) ||
		text(got.Previous) != text(want.Previous) || text(got.Next) != text(want.Next) || len(got.Marks) != 300 || most != want.Most || got.Marks[299] != live[r.events()] {
		got.Marks = nil
		t.Errorf("%s: %+v\nwant %+v; previous %s, next %s, most at %s", query, got, want, text(want.Previous), text(want.Next), text(want.MostEvent))
	}
}

// With only and moving the picture is as high as what is kept, from the bottom.
func TestKept(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	r, err := c.s.runs.ready(1)
	if err != nil {
		t.Fatal(err)
	}
	const from, to = 9000, 15000
	for query, keep := range map[string]func(i int) bool{
		"only=1&min=20MiB": func(i int) bool { return r.lives.Size[i] >= 20<<20 },
		"moving=1":         func(i int) bool { return int(r.lives.Born[i]) >= from || int(r.lives.Gone[i]) < to },
	} {
		d := decode(t, c.get(fmt.Sprintf("api/timeline?run=1&from=%d&to=%d&width=300&height=400&%s", from, to, query)))
		most := uint64(0)
		for k, end := range d.ends {
			want := uint64(0)
			for _, i := range r.lives.Alive(nil, int(end)) {
				if keep(int(i)) {
					want += r.lives.Size[i]
				}
			}
			most = max(most, want)
			sum := 0.0
			for _, rect := range d.rects {
				if int(rect[0]) <= k && k < int(rect[1]) {
					sum += float64(rect[3] - rect[2])
				}
			}
			if got := float64(d.live[k]); math.Abs(got-float64(want)*400/d.yMax) > 0.01 || math.Abs(sum-float64(d.band[k])) > 0.01 {
				t.Fatalf("%s: column %d is %v pixels high, its rectangles %v, want %v bytes of %v", query, k, got, sum, want, d.yMax)
			}
		}
		if d.yMax < float64(most) || d.yMax > 1.1*float64(most) {
			t.Errorf("%s: the axis goes up to %v, the picture to %d", query, d.yMax, most)
		}
	}
}

// A window is the same events on both axes.
func TestWindows(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default", "variety/stateonly")
	r, err := c.s.runs.ready(1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	for range 50 {
		from := rng.IntN(r.events() - 1)
		to := from + 1 + rng.IntN(r.events()-from)
		var there, back windows
		c.json(fmt.Sprintf("api/window?run=1&from=%d&to=%d", from, to), &there)
		if there.Event != (extent{float64(from), float64(to)}) || there.Time == nil || there.After != from-1 || there.Until != to-1 {
			t.Fatalf("%d to %d: %+v", from, to, there)
		}
		c.json(fmt.Sprintf("api/window?run=1&x=time&from=%.0f&to=%.0f", there.Time.From, there.Time.To), &back)
		// Events of one microsecond cannot be told apart by time.
		if back.Event.From > float64(from) || back.Event.To < float64(to) ||
			r.clock.At(int(back.Event.From)) != r.clock.At(from) || r.clock.At(int(back.Event.To)-1) != r.clock.At(to-1) {
			t.Errorf("%d to %d is %+v by time, and %+v by event again", from, to, *there.Time, back.Event)
		}
	}
	var none windows
	c.json("api/window?run=2", &none)
	if r, _ := c.s.runs.ready(2); none.Time != nil && r.clock.First == trace.NoTime {
		t.Errorf("a file without events has the times %+v", none.Time)
	}
}
