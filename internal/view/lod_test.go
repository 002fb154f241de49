package view

import (
	"cmp"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

var pictured = []string{
	"snapshots/gpt2_varlen-tight-default", "snapshots/streams_graphs-default", "snapshots/serve_generate-tight-default",
	"snapshots/resnet_batches-default", "variety/expand_tight", "variety/ring", "variety/midrun", "variety/stateonly", "variety/nocontext",
}

// randomWindow is any piece of a run.
func randomWindow(r *pageRun, rng *rand.Rand) *window {
	w := &window{time: r.clock.First != trace.NoTime && rng.IntN(2) == 0}
	end := r.extent(w.time)
	w.x0, w.x1 = 0, end
	if rng.IntN(4) > 0 {
		width := end * math.Pow(2, -14*rng.Float64())
		w.x0 = rng.Float64() * (end - width)
		w.x1 = w.x0 + width
	}
	r.cut(w, 1+rng.IntN(2000))
	return w
}

func (r *pageRun) fullScale(height int) scale {
	high, _ := r.course.Highest(0, r.events()-1)
	return scale{0, max(1, high.Reserved, high.Active), height}
}

// In every column the rectangles and the band are together exactly what is
// active, and the rectangles stand on each other in the order of allocation.
func TestTheStackIsAsHighAsWhatIsLive(t *testing.T) {
	for _, name := range short.Some(pictured, 2) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			r := loadRun(t, name)
			rng := rand.New(rand.NewPCG(1, 1))
			rects := 0
			for range 40 {
				w := randomWindow(r, rng)
				y := r.fullScale(100 + rng.IntN(1000))
				most := maxRects
				if rng.IntN(3) == 0 {
					most = 1 + rng.IntN(300)
				}
				p := draw(&r.lives.Spans, nil, w, &y, most)
				rects += len(p.rects)
				if len(p.rects) > most {
					t.Fatalf("%d rectangles, at most %d were asked for", len(p.rects), most)
				}
				for range 5 {
					checkColumn(t, r, w, y, p, rng.IntN(len(w.ends)))
				}
			}
			if rects == 0 {
				t.Error("nothing was drawn")
			}
		})
	}
}

func checkColumn(t *testing.T, r *pageRun, w *window, y scale, p *picture, c int) {
	t.Helper()
	event := int(w.ends[c])
	var here []rect
	drawn, live := uint64(0), uint64(0)
	for _, x := range p.rects {
		if int(x.c0) <= c && c < int(x.c1) {
			here = append(here, x)
			drawn += x.y1 - x.y0
			if x.y1-x.y0 != r.lives.Size[x.life] {
				t.Fatalf("life %d has %d bytes and is drawn with %d", x.life, r.lives.Size[x.life], x.y1-x.y0)
			}
			if x.pending != r.lives.Pending(int(x.life), event) {
				t.Fatalf("column %d after event %d: life %d is drawn as pending: %t", c, event, x.life, x.pending)
			}
		}
	}
	for i := range r.lives.Len() {
		if int(r.lives.Born[i]) <= event && event < int(r.lives.Gone[i]) {
			live += r.lives.Size[i]
		}
	}
	if at := r.course.At(event).Active; at != live {
		t.Fatalf("after event %d: %d active, the lives have %d", event, at, live)
	}
	if drawn != p.drawn[c] || drawn > live {
		t.Fatalf("column %d of %d, %v to %v: rectangles of %d, noted %d, of %d live", c, len(w.ends), w.x0, w.x1, drawn, p.drawn[c], live)
	}
	slices.SortFunc(here, func(a, b rect) int { return cmp.Compare(a.life, b.life) })
	bottom, slack := uint64(0), uint64(0)
	if p.lagging {
		slack = uint64(lag/y.perByte()) + 1
	}
	for i, x := range here {
		if i > 0 && here[i-1].life == x.life {
			t.Fatalf("column %d: life %d is drawn twice", c, x.life)
		}
		if int(r.lives.Born[x.life]) > event || int(r.lives.Gone[x.life]) <= event {
			t.Fatalf("column %d: life %d is not active after event %d", c, x.life, event)
		}
		if x.y0 < bottom || x.y0-bottom > slack {
			t.Fatalf("column %d: life %d stands at %d, the ones below it end at %d", c, x.life, x.y0, bottom)
		}
		bottom += x.y1 - x.y0
	}
}

// A column shows the state after the last event before its right edge.
func TestColumns(t *testing.T) {
	r := loadRun(t, "snapshots/streams_graphs-default")
	rng := rand.New(rand.NewPCG(5, 5))
	for range 50 {
		w := randomWindow(r, rng)
		for range 20 {
			c := rng.IntN(len(w.ends))
			right := w.edge(c + 1)
			want := -1
			for i := range r.events() {
				at := float64(i)
				if w.time {
					at = float64(r.clock.At(i) - r.clock.First)
				}
				if at >= right {
					break
				}
				want = i
			}
			if int(w.ends[c]) != want {
				t.Fatalf("time %t, column %d up to %v: event %d, want %d", w.time, c, right, w.ends[c], want)
			}
		}
	}
}

// What is largest is drawn: nothing in the band has more area than something
// that is drawn, but for the grain of the buckets.
func TestTheLargestAreDrawn(t *testing.T) {
	r := loadRun(t, "snapshots/gpt2_varlen-tight-default")
	w := &window{x1: r.extent(false)}
	r.cut(w, 800)
	p := draw(&r.lives.Spans, nil, w, new(r.fullScale(600)), 2000)
	drawn := map[int32]bool{}
	for _, x := range p.rects {
		drawn[x.life] = true
	}
	least, most := math.Inf(1), 0.0
	column := w.columnOf(nil)
	for i := range r.lives.Len() {
		c0, c1 := column.column(r.lives.Born[i]), column.column(r.lives.Gone[i])
		area := float64(r.lives.Size[i]) * float64(c1-c0)
		switch {
		case c0 >= c1:
		case drawn[int32(i)]:
			least = min(least, area)
		default:
			most = max(most, area)
		}
	}
	if len(drawn) < 100 || most > least*(1+1.0/8) {
		t.Errorf("%d lives are drawn, the smallest with %v, but one of %v is not", len(drawn), least, most)
	}
}

// A window of bytes shows the rectangles in it, where they are.
func TestVerticalZoom(t *testing.T) {
	r := loadRun(t, "snapshots/gpt2_varlen-tight-default")
	w := &window{x1: r.extent(false)}
	r.cut(w, 300)
	y := r.fullScale(600)
	y.low, y.high = y.high/4, y.high/2
	p := draw(&r.lives.Spans, nil, w, &y, maxRects)
	if len(p.rects) == 0 {
		t.Fatal("nothing is drawn")
	}
	for _, x := range p.rects {
		if x.y1 <= y.low || x.y0 >= y.high {
			t.Fatalf("%+v lies outside of %+v", x, y)
		}
	}
	for c := range w.ends {
		if p.drawn[c] > r.course.At(int(w.ends[c])).Active {
			t.Fatalf("column %d: more is drawn than is live", c)
		}
	}
}

// madeRun is the run of events that somebody made up.
func madeRun(t testing.TB, events ...trace.Event) *pageRun {
	t.Helper()
	tr := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks(), Partial: true}
	for _, e := range events {
		tr.Events.Append(e)
	}
	in := &input.Input{Name: "made up", Snapshot: &snapshot.File{Traces: []*trace.Trace{tr}}}
	r, err := newRun(t.Context(), in, tr, input.AnyDevice)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Where there is room, everything that can be seen is drawn.
func TestAllThatCanBeSeenIsDrawn(t *testing.T) {
	r := loadRun(t, "snapshots/gpt2_varlen-tight-default")
	w := &window{x0: 2000, x1: 4000}
	r.cut(w, 900)
	y := r.fullScale(600)
	p := draw(&r.lives.Spans, nil, w, &y, 1<<30)
	drawn := map[int32]bool{}
	for _, x := range p.rects {
		drawn[x.life] = true
	}
	column := w.columnOf(nil)
	for i := range r.lives.Len() {
		c0, c1 := column.column(r.lives.Born[i]), column.column(r.lives.Gone[i])
		area := float64(r.lives.Size[i]) * y.perByte() * float64(max(c1-c0, 0))
		if visible := area >= leastArea; visible != drawn[int32(i)] {
			t.Fatalf("life %d in columns %d to %d, %v pixels, is drawn: %t", i, c0, c1, area, drawn[int32(i)])
		}
	}
}

// Of many that are equal some are drawn, all over the picture.
func TestManyEqualLives(t *testing.T) {
	var events []trace.Event
	for i := range uint64(10_000) {
		events = append(events,
			trace.Event{Action: alloc.ActionAlloc, Addr: 1<<40 + i<<20, Size: 1 << 20, Time: int64(i)},
			trace.Event{Action: alloc.ActionOOM, Time: int64(i)},
			trace.Event{Action: alloc.ActionFreeRequested, Addr: 1<<40 + i<<20, Size: 1 << 20, Time: int64(i)},
			trace.Event{Action: alloc.ActionFreeCompleted, Addr: 1<<40 + i<<20, Size: 1 << 20, Time: int64(i)})
	}
	r := madeRun(t, events...)
	w := &window{x1: r.extent(false)}
	r.cut(w, maxWidth)
	p := draw(&r.lives.Spans, nil, w, &scale{0, 1 << 20, 100}, 100)
	if n := len(p.rects); n < 50 || n > 100 || p.rects[0].c0 > maxWidth/10 || p.rects[n-1].c0 < maxWidth*9/10 {
		t.Errorf("%d rectangles: %v", n, p.rects)
	}
}

// Sizes that no device has, as in damaged files, do no harm.
func TestHugeSizes(t *testing.T) {
	var events []trace.Event
	for i := range uint64(50) {
		events = append(events, trace.Event{Action: alloc.ActionAlloc, Addr: i << 50, Size: math.MaxUint64 - i, Time: trace.NoTime})
		events = append(events, trace.Event{Action: alloc.ActionSegmentAlloc, Addr: i << 50, Size: math.MaxUint64 - i, Time: trace.NoTime})
		events = append(events, trace.Event{Action: alloc.ActionFreeCompleted, Addr: i << 51, Size: 3, Time: trace.NoTime})
	}
	r := madeRun(t, events...)
	w := &window{x1: r.extent(false)}
	r.cut(w, 100)
	for _, high := range []uint64{1, 1 << 30, math.MaxUint64} {
		draw(&r.lives.Spans, nil, w, &scale{0, high, 100}, maxRects)
	}
	r.layout.At(75)
	r.newOverview()
	if r.clock.First != trace.NoTime {
		t.Errorf("the first time is %d", r.clock.First)
	}
}
