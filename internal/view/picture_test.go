package view

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/present/palette"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/trace"
)

// decoded is a picture as the page reads it.
type decoded struct {
	flags             uint32
	yMax, yMin        float64
	x0, x1            float64
	rects             [][4]float32
	allocs, colours   []uint32
	live, band, other []float32 // of columns
	pending, highest  []float32
	ends              []int32
}

func decode(t *testing.T, b []byte) *decoded {
	t.Helper()
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	single := func(i int) float32 { return math.Float32frombits(word(i)) }
	double := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[4*i:])) }
	if word(0) != 0x41534854 || word(1) != 2 || word(4) != 1 {
		t.Fatalf("the header is % x", b[:24])
	}
	rects, columns := int(word(2)), int(word(3))
	if want := 64 + 24*rects + 24*columns; len(b) != want {
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
		d.highest, d.ends = append(d.highest, single(at+4)), append(d.ends, int32(word(at+5)))
		at += 6
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
}

// The largest stacks have a colour each, and mostly the same one in another file;
// the others share one.
func TestStackColours(t *testing.T) {
	text := func(r *pageRun, id int) string { return fmt.Sprint(r.frames(trace.StackID(id))) }
	own := func(r *pageRun) map[string]uint32 {
		of, seen, others := map[string]uint32{}, map[uint32]bool{}, 0
		for i, colour := range r.colours() {
			switch {
			case colour == colourOthers:
				others++
			case seen[colour]:
				t.Errorf("two stacks have the colour %d", colour)
			default:
				seen[colour], of[text(r, i)] = true, colour
			}
		}
		if len(of) != palette.Most || others == 0 {
			t.Errorf("%d stacks have a colour and %d share one", len(of), others)
		}
		return of
	}
	one, two := own(loadRun(t, "snapshots/gpt2_fixed-default")), own(loadRun(t, "snapshots/gpt2_fixed-tight-default"))
	same, both := 0, 0
	for stack, colour := range one {
		if other, ok := two[stack]; ok {
			both++
			if other == colour {
				same++
			}
		}
	}
	if both < 10 || 2*same < both {
		t.Errorf("of %d stacks that have a colour in both files %d have the same", both, same)
	}
	// The stack that holds most at the moment is not among the others.
	r := loadRun(t, "snapshots/gpt2_varlen-tight-default")
	held := map[trace.StackID]uint64{}
	for _, i := range r.lives.Alive(nil, r.firstMoment()) {
		held[r.lives.Stack(int(i))] += r.lives.Size[i]
	}
	most := slices.MaxFunc(slices.Collect(maps.Keys(held)), func(a, b trace.StackID) int { return cmp.Compare(held[a], held[b]) })
	if r.colours()[most] == colourOthers {
		t.Error("the stack that holds most has no colour")
	}
}

// Pools that the file does not name are in the legend too, in the words of all
// screens.
func TestPoolLegend(t *testing.T) {
	c := serve(t, nil, "snapshots/streams_graphs-tight-default")
	var o overview
	c.json("api/meta?run=1", &o)
	if !o.PoolUnknown {
		t.Error("the file names the pools of all blocks, it says")
	}
	seen := map[string]bool{}
	for event := 0; event < o.Events; event++ {
		var l legend
		c.json(fmt.Sprintf("api/legend?run=1&color=pool&event=%d", event), &l)
		for _, e := range l.Entries {
			seen[e.Label] = true
			if unknown := e.Label == "pool not known"; unknown != (e.Colour == colourUnknown) {
				t.Errorf("%s has the colour %d", e.Label, e.Colour)
			}
		}
	}
	labels := slices.Sorted(maps.Keys(seen))
	if want := []string{"pool 0,1", "pool default", "pool not known"}; !slices.Equal(labels, want) {
		t.Errorf("the legend has %q, want %q", labels, want)
	}
}

// Files whose categories are known begin with them.
func TestDefaultColouring(t *testing.T) {
	for name, want := range map[string]string{
		"snapshots/gpt2_varlen-tight-default": colourByCategory,
		"variety/stateonly":                   colourByStack,
	} {
		if got := loadRun(t, name).defaultColouring(); got != want {
			t.Errorf("%s: coloured by %s, want %s", name, got, want)
		}
	}
}

// The blocks of a map have the colours of the timeline's; their age is at the
// moment.
func TestSegmentColours(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	r, err := c.s.runs.ready(1)
	if err != nil {
		t.Fatal(err)
	}
	const event = 9000
	for _, by := range momentColourings {
		var m segmentMap
		c.json(fmt.Sprintf("api/segments?run=1&event=%d&color=%s", event, by), &m)
		seen := map[uint32]bool{}
		for _, s := range m.Segments {
			if len(s.Colours) != len(s.Blocks) {
				t.Fatalf("%s: %d blocks, %d colours", by, len(s.Blocks), len(s.Colours))
			}
			for i, b := range s.Blocks {
				if b[3] < 0 {
					continue
				}
				seen[s.Colours[i]] = true
				want := uint32(0)
				switch born := int(r.lives.Born[b[3]]); {
				case by != colourByAge:
					want = r.painter(r.blocks(), by)(int32(b[3]))
				case born < 0:
					want = lifeForever
				default:
					for age := event - born + 1; age > 1; age /= 2 {
						want++
					}
				}
				if s.Colours[i] != want {
					t.Fatalf("%s: block %d has the colour %d, want %d", by, b[3], s.Colours[i], want)
				}
			}
		}
		if len(seen) < 2 && by != "stream" && by != "pool" {
			t.Errorf("%s: %d colours", by, len(seen))
		}
	}
	if code, _, body := c.do("GET", "api/segments?run=1&color=hue", nil); code != 400 || !strings.Contains(string(body), "category, stack") {
		t.Errorf("a colouring that is none is answered %d %s", code, body)
	}
}

// Segments can be stacked as blocks are: together they are what is reserved.
func TestPicturesOfSegments(t *testing.T) {
	for _, name := range short.Some([]string{"snapshots/gpt2_varlen-tight-default", "variety/expand_tight", "variety/ring", "variety/expand_serve"}, 1) {
		c := serve(t, nil, name)
		r, err := c.s.runs.ready(1)
		if err != nil {
			t.Fatal(err)
		}
		d := decode(t, c.get("api/timeline?run=1&what=segments&width=400&height=500"))
		var curve struct{ Event []int }
		c.json("api/curve?run=1&n=400", &curve)
		for i, event := range curve.Event {
			want := float64(r.course.At(event).Reserved) * 500 / d.yMax
			sum := 0.0
			for _, x := range d.rects {
				if int(x[0]) <= i && i < int(x[1]) {
					sum += float64(x[3] - x[2])
				}
			}
			if math.Abs(float64(d.live[i])-want) > 0.001 || math.Abs(sum-float64(d.band[i])) > 0.01 || d.live[i]-d.band[i] > 1 {
				t.Fatalf("%s, column %d: %v pixels drawn, %v to the band, %v in all, want %v", name, i, sum, d.band[i], d.live[i], want)
			}
		}
		for _, made := range d.allocs {
			if made == noName {
				continue
			}
			if a := r.trace.Events.Action.At(int(made)); a != alloc.ActionSegmentAlloc && a != alloc.ActionSegmentMap {
				t.Fatalf("%s: a segment made by %s", name, a)
			}
		}
		var s stackTree
		c.json("api/stacks?run=1&what=segments&peak=1", &s)
		s.check(t, name)
		if s.Total != r.peaks.Reserved.Value {
			t.Errorf("%s: stacks of %d bytes, %d are reserved", name, s.Total, r.peaks.Reserved.Value)
		}
	}
}
