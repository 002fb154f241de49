package html

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// The columns have every event once, and no peak is lost in them.
func TestColumns(t *testing.T) {
	for _, file := range short.Files(t, []string{streams, fragmented, midrun, long}, 2) {
		s := subjectOf(t, read(t, file, false))
		columns := s.columns()
		if len(columns) > curveColumns {
			t.Errorf("%s: %d columns", file, len(columns))
		}
		next := 0
		var high timeline.Level
		for _, c := range columns {
			if c.first != next || c.last < c.first {
				t.Fatalf("%s: a column from %d to %d after one to %d", file, c.first, c.last, next-1)
			}
			next = c.last + 1
			high.Reserved, high.Allocated = max(high.Reserved, c.high.Reserved), max(high.Allocated, c.high.Allocated)
		}
		if next != s.events() {
			t.Errorf("%s: columns end at %d of %d events", file, next, s.events())
		}
		if high.Reserved != s.peaks.Reserved.Value || high.Allocated != s.peaks.Allocated.Value {
			t.Errorf("%s: the highest columns are %d and %d, the peaks %d and %d", file,
				high.Reserved, high.Allocated, s.peaks.Reserved.Value, s.peaks.Allocated.Value)
		}
	}
}

// The curve of reserved memory reaches as high as the axis says.
func TestCurveScale(t *testing.T) {
	s := subjectOf(t, read(t, fragmented, true))
	c := newCurves(s, details[0])
	top := math.Inf(1)
	for _, m := range regexp.MustCompile(`V([0-9.]+)`).FindAllStringSubmatch(c.Reserved, -1) {
		top = min(top, number64(t, m[1]))
	}
	first, last := c.YTicks[0], c.YTicks[len(c.YTicks)-1]
	if first.Label != "0" || last.Label != "6 GiB" {
		t.Fatalf("the axis goes from %s to %s", first.Label, last.Label)
	}
	perByte := (number64(t, first.At) - number64(t, last.At)) / (6 << 30)
	want := float64(s.peaks.Reserved.Value)
	if got := (number64(t, first.At) - top) / perByte; math.Abs(got-want) > 0.01*want {
		t.Errorf("the curve reaches %.0f bytes, the peak is %.0f", got, want)
	}
	if n := strings.Count(c.Reserved, "H"); n > curveColumns+1 {
		t.Errorf("%d points", n)
	}
	if c.Failure == nil || c.Limit == nil || len(c.Peaks) != 2 {
		t.Errorf("failure %v, limit %v, peaks %v are not all marked", c.Failure, c.Limit, c.Peaks)
	}
}

func number64(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var rectangle = regexp.MustCompile(`M([0-9.]+) ([0-9.]+)h([0-9.]+)v([0-9.]+)h-[0-9.]+z`)

// The areas of the map are the bytes: of all segments, and of what is live and
// pending in them.
func TestMapAreas(t *testing.T) {
	for _, file := range short.Files(t, []string{fragmented, healthy, streams, expandable, midrun, stateOnly, long}, 3) {
		s := subjectOf(t, read(t, file, false))
		m := newSegmentMap(s, details[0])
		area := func(path string) (sum float64) {
			for _, r := range rectangle.FindAllStringSubmatch(path, -1) {
				if x, w := number64(t, r[1]), number64(t, r[3]); x+w > mapWidth+0.2 {
					t.Fatalf("%s: %s goes over the edge", file, r[0])
				}
				sum += number64(t, r[3]) * number64(t, r[4])
			}
			return sum
		}
		at := s.layout.At(s.moment.event)
		var span, live, unmapped float64
		for i := range at.Segments {
			span += float64(at.Segments[i].Span)
			for _, b := range at.Segments[i].Blocks {
				switch b.State {
				case timeline.BlockUnmapped:
					unmapped += float64(b.Size)
				case timeline.BlockAllocated, timeline.BlockPending:
					live += float64(b.Size)
				}
			}
		}
		perByte := area(m.Outlines) / span
		drawn := map[bool]float64{}
		for _, f := range m.Fills {
			drawn[f.Class == classUnmapped] += area(f.Path)
		}
		if got := drawn[false] / perByte; math.Abs(got-live) > 0.01*span {
			t.Errorf("%s: %.0f bytes are drawn live, %.0f are; of %.0f", file, got, live, span)
		}
		if got := drawn[true] / perByte; math.Abs(got-unmapped) > 0.01*span {
			t.Errorf("%s: %.0f bytes are drawn as not mapped, %.0f are", file, got, unmapped)
		}
		if h := number64(t, m.Height); h > 1100 {
			t.Errorf("%s: the map is %v high, more than a page", file, h)
		}
	}
}

// However many segments there are, the map stays within a page and its paths
// within bounds.
func TestMapOfManySegments(t *testing.T) {
	for _, sizes := range [][]uint64{{2 << 20}, {2 << 20, 20 << 20, 1 << 30}, {80 << 30, 2 << 20}, {6 << 20}} {
		var segments []*timeline.MapSegment
		address := uint64(1 << 40)
		for i := range 20_000 {
			size := sizes[i%len(sizes)]
			g := &timeline.MapSegment{Address: address, Size: size, Span: size}
			for off := uint64(0); off < size; off += size / 4 {
				g.Blocks = append(g.Blocks, timeline.MapBlock{Address: address + off, Size: size / 4, State: timeline.BlockState(off / (size / 4) % 2 * 2), Life: -1})
			}
			segments = append(segments, g)
			address += size
		}
		total, widest := uint64(0), uint64(0)
		for _, g := range segments {
			total, widest = total+g.Span, max(widest, g.Span)
		}
		w := &mapDrawing{row: max(widest, total/mapRows), paths: map[string]*strings.Builder{}, out: &segmentMap{}}
		w.scale = (mapWidth - 1) / float64(w.row)
		height := w.rows(segments)
		w.fills()
		bytes := len(w.out.Outlines)
		for _, f := range w.out.Fills {
			bytes += len(f.Path)
		}
		if height > 1100 || bytes > 1_500_000 {
			t.Errorf("sizes %v: %.0f high, %d bytes of paths", sizes, height, bytes)
		}
	}
}

func TestRoundStep(t *testing.T) {
	for n, want := range map[int]int{1: 1, 8: 1, 9: 2, 17: 2, 18: 5, 490: 100, 5737: 1000, 18435: 5000, 1_000_000: 200_000} {
		if got := roundStep(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}

func TestPx(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1: "1", 1.04: "1", 1.05: "1.1", 959.96: "960", -2.5: "-2.5", 0.04: "0"} {
		if got := px(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}

// The moment is the failure, else the peak, else the end.
func TestMoment(t *testing.T) {
	for _, c := range []struct {
		file      string
		explained bool
		want      string
	}{
		{fragmented, true, "5736 true when it failed"},
		{fragmented, false, "5736 true when a request failed"},
		{healthy, true, "11341 false at the peak"},
		{stateOnly, false, "-1 false when the file was written"},
	} {
		m := subjectOf(t, read(t, c.file, c.explained)).moment
		if got := fmt.Sprintf("%d %v %s", m.event, m.failed, m.when); got != c.want {
			t.Errorf("%s: %s, want %s", c.file, got, c.want)
		}
	}
}
