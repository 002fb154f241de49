package view

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

var pictured = []string{
	"snapshots/gpt2_varlen-tight-default", "snapshots/streams_graphs-default", "snapshots/serve_generate-tight-default",
	"snapshots/resnet_batches-default", "variety/expand_tight", "variety/ring", "variety/midrun", "variety/stateonly", "variety/nocontext",
}

// randomWindow is any piece of a run.
func randomWindow(r *run, rng *rand.Rand) *window {
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

func (r *run) fullScale(height int) scale {
	high, _ := r.course.Highest(0, r.events()-1)
	return scale{0, max(1, high.Reserved, high.Active), height}
}

// In every column the rectangles and the band are together exactly what is
// active, and the rectangles stand on each other in the order of allocation.
func TestTheStackIsAsHighAsWhatIsLive(t *testing.T) {
	for _, name := range pictured {
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
				p := r.draw(w, y, most)
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

func checkColumn(t *testing.T, r *run, w *window, y scale, p *picture, c int) {
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
	p := r.draw(w, r.fullScale(600), 2000)
	drawn := map[int32]bool{}
	for _, x := range p.rects {
		drawn[x.life] = true
	}
	least, most := math.Inf(1), 0.0
	column := w.columnOf(nil)
	for i := range r.lives.Len() {
		c0, c1 := column.of(r.lives.Born[i]), column.of(r.lives.Gone[i])
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
	p := r.draw(w, y, maxRects)
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

// decoded is a picture as the page reads it.
type decoded struct {
	flags             uint32
	yMax, yMin        float64
	x0, x1            float64
	rects             [][4]float32
	allocs, colours   []uint32
	live, band, other []float32 // of columns
	pending           []float32
}

func decode(t *testing.T, b []byte) *decoded {
	t.Helper()
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	single := func(i int) float32 { return math.Float32frombits(word(i)) }
	double := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[4*i:])) }
	if word(0) != 0x41534854 || word(1) != 1 || word(4) != 1 {
		t.Fatalf("the header is % x", b[:24])
	}
	rects, columns := int(word(2)), int(word(3))
	if want := 64 + 24*rects + 16*columns; len(b) != want {
		t.Fatalf("%d bytes, want %d", len(b), want)
	}
	d := &decoded{flags: word(5), yMax: double(6), x0: double(8), x1: double(10), yMin: double(12)}
	at := 16
	for range rects {
		d.rects = append(d.rects, [4]float32{single(at), single(at + 1), single(at + 2), single(at + 3)})
		d.allocs, d.colours = append(d.allocs, word(at+4)), append(d.colours, word(at+5))
		at += 6
	}
	for range columns {
		d.live, d.band = append(d.live, single(at)), append(d.band, single(at+1))
		d.other, d.pending = append(d.other, single(at+2)), append(d.pending, single(at+3))
		at += 4
	}
	return d
}

// What the page gets adds up in pixels, and is what api/curve says.
func TestPicturesOverHTTP(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	for _, x := range []string{"event", "time"} {
		d := decode(t, c.get("api/timeline?run=1&width=700&height=500&x="+x))
		var curve struct {
			LiveEnd  []uint64 `json:"live_end"`
			Active   []uint64
			Reserved []uint64
			X        []float64
			Event    []int
		}
		c.json("api/curve?run=1&n=700&x="+x, &curve)
		scale := 500 / d.yMax
		for i, live := range curve.LiveEnd {
			if want := float64(live) * scale; math.Abs(float64(d.live[i])-want) > 0.001 {
				t.Fatalf("column %d: %v pixels live, want %v", i, d.live[i], want)
			}
			sum := 0.0
			for _, r := range d.rects {
				if int(r[0]) <= i && i < int(r[1]) {
					sum += float64(r[3] - r[2])
				}
			}
			if math.Abs(sum-float64(d.band[i])) > 0.01 || d.band[i] > d.live[i]+0.001 {
				t.Fatalf("column %d: rectangles of %v pixels, the band begins at %v", i, sum, d.band[i])
			}
			if curve.Active[i] < live || i > 0 && curve.X[i] <= curve.X[i-1] {
				t.Fatalf("column %d: %d at the end, %d at most", i, live, curve.Active[i])
			}
		}
		if d.flags != 0 || d.yMin != 0 {
			t.Errorf("flags %x, yMin %v", d.flags, d.yMin)
		}
	}
	d := decode(t, c.get("api/timeline?run=1&width=50&height=500&peak=1"))
	var curve struct{ Active []uint64 }
	c.json("api/curve?run=1&n=50", &curve)
	for i, most := range curve.Active {
		if want := float64(most) * 500 / d.yMax; math.Abs(float64(d.live[i])-want) > 0.001 {
			t.Fatalf("peak=1, column %d: %v pixels, want %v", i, d.live[i], want)
		}
	}
	if d.flags&1 == 0 {
		t.Errorf("peak=1: flags %x", d.flags)
	}
}

// A filter dims what it does not choose, and moves nothing.
func TestFiltersDim(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	r, err := c.s.runs.ready(1)
	if err != nil {
		t.Fatal(err)
	}
	n := r.events()
	all := decode(t, c.get("api/timeline?run=1&width=300&height=500"))
	for _, f := range []string{
		"stack=modeling_gpt2", "min=1MiB", "max=4MiB", "never_freed=1", fmt.Sprint("alive=", n/2), "stream=0", "min=10M&stack=forward", "stream=12345", "pool=0,0",
	} {
		d := decode(t, c.get("api/timeline?run=1&width=300&height=500&"+f))
		if !slices.Equal(d.rects, all.rects) || !slices.Equal(d.live, all.live) {
			t.Errorf("%s: the picture is another one", f)
		}
		dimmed := 0
		for i, colour := range d.colours {
			life := int(d.allocs[i])
			if colour&^uint32(flagDimmed) != all.colours[i] {
				t.Fatalf("%s: another colour", f)
			}
			dim := colour&flagDimmed != 0
			if dim {
				dimmed++
			}
			size := r.lives.Size[life]
			switch f {
			case "min=1MiB":
				if dim != (size < 1<<20) {
					t.Fatalf("%s: %d bytes, dimmed %t", f, size, dim)
				}
			case "never_freed=1":
				if dim != (colour&flagForever == 0) {
					t.Fatalf("%s: colour %x", f, colour)
				}
			case "stream=12345":
				if !dim {
					t.Fatalf("%s: not dimmed", f)
				}
			case "stream=0":
				if dim {
					t.Fatalf("%s: dimmed", f)
				}
			}
		}
		if f != "stream=0" && f != "pool=0,0" && dimmed == 0 {
			t.Errorf("%s: nothing is dimmed", f)
		}
	}
}

func TestColours(t *testing.T) {
	c := serve(t, nil, "variety/graphs", "snapshots/streams_graphs-default")
	r, err := c.s.runs.ready(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range colourings {
		d := decode(t, c.get("api/timeline?run=2&width=300&height=500&color="+by))
		seen := map[uint32]bool{}
		for i, colour := range d.colours {
			life := int(d.allocs[i])
			index := colour & (1<<colourBits - 1)
			seen[index] = true
			switch by {
			case "size":
				if size := r.lives.Size[life]; size < 1<<index || size >= 2<<index {
					t.Fatalf("size %d has colour %d", size, index)
				}
			case "stream":
				if r.streamIDs[index] != r.lives.Stream(life) {
					t.Fatalf("stream %d has colour %d", r.lives.Stream(life), index)
				}
			case "lifetime":
				if forever := colour&flagForever != 0; forever != (index == lifeForever) {
					t.Fatalf("never freed %t, colour %d", forever, index)
				}
			}
		}
		if len(seen) < 2 {
			t.Errorf("%s: %d colours", by, len(seen))
		}
	}
	// The same stack has the same colour in two files.
	one, two := loadRun(t, "snapshots/gpt2_fixed-default"), loadRun(t, "snapshots/gpt2_fixed-tight-default")
	colours := map[string]uint32{}
	text := func(r *run, id int) string { return fmt.Sprint(r.frames(trace.StackID(id))) }
	for i, colour := range one.colours() {
		colours[text(one, i)] = colour
	}
	same := 0
	for i, colour := range two.colours() {
		if other, ok := colours[text(two, i)]; ok {
			same++
			if other != colour {
				t.Fatalf("a stack has the colours %d and %d", other, colour)
			}
		}
	}
	if same < 10 {
		t.Errorf("%d stacks are in both files", same)
	}
}

// madeRun is the run of events that somebody made up.
func madeRun(t testing.TB, events ...trace.Event) *run {
	t.Helper()
	tr := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks(), Partial: true}
	for _, e := range events {
		tr.Events.Append(e)
	}
	in := &Input{Name: "made up", File: &snapshot.File{Traces: []*trace.Trace{tr}}}
	r, err := newRun(t.Context(), in, tr, Device{Number: -1})
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
	p := r.draw(w, y, 1<<30)
	drawn := map[int32]bool{}
	for _, x := range p.rects {
		drawn[x.life] = true
	}
	column := w.columnOf(nil)
	for i := range r.lives.Len() {
		c0, c1 := column.of(r.lives.Born[i]), column.of(r.lives.Gone[i])
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
	p := r.draw(w, scale{0, 1 << 20, 100}, 100)
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
		r.draw(w, scale{0, high, 100}, maxRects)
	}
	r.layout.At(75)
	r.newOverview()
	if r.clock.First != trace.NoTime {
		t.Errorf("the first time is %d", r.clock.First)
	}
}
