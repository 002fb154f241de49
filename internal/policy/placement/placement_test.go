package placement

import (
	"cmp"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// open reads a problem of testdata.
func open(t testing.TB, path string) *Problem {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Read(r)
	if err != nil {
		t.Fatal(path, err)
	}
	return p
}

// The hard problems of google/minimalloc, whose best plan is as low as their load.
// What a search finds depends on the time it has; the bars for a minute are those
// of docs/policies.md (make policies-hard), this is a second.
func TestHardProblems(t *testing.T) {
	for _, name := range []string{"A", "F", "K"} {
		p := open(t, "../../../testdata/placement/"+name+".1048576.csv")
		r, err := Solve(t.Context(), p.Buffers, 300*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(p.Buffers, r.Plan); err != nil {
			t.Fatal(err)
		}
		if load := MaxLoad(p.Buffers); r.Height < load || r.Height > r.Greedy {
			t.Errorf("%s: %d after %d, the bound is %d", name, r.Height, r.Greedy, load)
		}
	}
}

// brute reports whether two buffers of a plan overlap, by looking at all pairs.
func brute(buffers []Buffer, p *Plan) bool {
	for i, a := range buffers {
		for j, b := range buffers[:i] {
			if a.Lower < b.Upper && b.Lower < a.Upper && p.Offsets[i] < p.Offsets[j]+b.Size && p.Offsets[j] < p.Offsets[i]+a.Size {
				return true
			}
		}
	}
	return false
}

func drawBuffers(t *rapid.T) []Buffer {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Buffer {
		lower := rapid.Int64Range(0, 30).Draw(t, "lower")
		return Buffer{lower, lower + rapid.Int64Range(1, 10).Draw(t, "life"), rapid.Uint64Range(1, 50).Draw(t, "size")}
	}), 1, 40).Draw(t, "buffers")
}

func TestPlansHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buffers := drawBuffers(t)
		r, err := Solve(t.Context(), buffers, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(buffers, r.Plan); err != nil || brute(buffers, r.Plan) {
			t.Fatalf("%v: %v", r.Plan, err)
		}
		if least := MaxLoad(buffers); r.Height < least || r.Greedy < r.Height {
			t.Fatalf("the plan needs %d, greedy %d, the bound is %d", r.Height, r.Greedy, least)
		}
	})
}

// lowest looks at what is taken in its order.
func lowest(taken []span, size uint64) (at uint64) {
	slices.SortFunc(taken, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range taken {
		if s.from >= at+size {
			break
		}
		at = max(at, s.to)
	}
	return at
}

// A gap is where going through all in their order finds it, also where offsets are
// close together in a plan that is high.
func TestGaps(t *testing.T) {
	var g gaps
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]uint64{1, 7, 255, 256, 257, 5000, 1 << 40, 1<<63 - 1}).Draw(t, "most")
		near := rapid.Bool().Draw(t, "near")
		height := uint64(0)
		taken := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span {
			from := rapid.Uint64Range(0, most-1).Draw(t, "from")
			if near {
				from %= 100
			}
			s := span{from, rapid.Uint64Range(from+1, min(most, from+60)).Draw(t, "to")}
			height = max(height, s.to)
			return s
		}), 0, 300).Draw(t, "taken")
		size := rapid.Uint64Range(1, 60).Draw(t, "size")
		if got, want := g.lowest(taken, size, height), lowest(slices.Clone(taken), size); got != want {
			t.Fatalf("%d instead of %d", got, want)
		}
	})
}

// Each buffer lies where looking at all others puts it, in problems of many windows.
func TestLowest(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		var buffers []Buffer
		for range 2 + r.IntN(6*window) {
			lower := r.Int64N(2000)
			life := 1 + r.Int64N(8)
			if r.IntN(4) == 0 {
				life = 1 + r.Int64N(2500)
			}
			buffers = append(buffers, Buffer{lower, lower + life, 1 + r.Uint64N(50)})
		}
		if seed%2 == 1 { // very many end together, before the last one begins and after
			for n := range 4 * window {
				buffers = append(buffers, Buffer{r.Int64N(2000), 5000 + 2*int64(n%2), 1 + r.Uint64N(50)})
			}
			buffers = append(buffers, Buffer{5001, 5002, 7})
		}
		if seed%4 >= 2 { // very many live at a time, and begin and end in no order
			for range 12 * window {
				buffers = append(buffers, Buffer{r.Int64N(2500), 2500 + r.Int64N(2500), 1 + r.Uint64N(50)})
			}
		}
		p := newPlanner(buffers)
		order := p.bySize()
		for range 2 { // what a run leaves behind does not change the next
			if _, ok := p.run(t.Context(), order, noBound); !ok {
				t.Fatal("given up")
			}
		}
		for n, i := range order {
			var taken []span
			for _, j := range order[:n] {
				if a, b := p.buffers[i], p.buffers[j]; a.Lower < b.Upper && b.Lower < a.Upper {
					taken = append(taken, p.lies[j])
				}
			}
			if want := lowest(taken, p.buffers[i].Size); p.lies[i].from != want {
				t.Fatalf("seed %d: buffer %d of %d lies at %d instead of %d", seed, i, len(order), p.lies[i].from, want)
			}
		}
	}
}

// The checker finds what looking at all pairs finds.
func TestCheckFindsOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buffers := drawBuffers(t)
		p := &Plan{Height: 300}
		for range buffers {
			p.Offsets = append(p.Offsets, rapid.Uint64Range(0, 250).Draw(t, "offset"))
		}
		if err := Check(buffers, p); (err != nil) != brute(buffers, p) {
			t.Fatalf("Check says %v", err)
		}
	})
}

// TestFewLookedAt: of buffers that live at the same time, as all do in a run that died, only those are looked at that lie
// where there may be room.
func TestFewLookedAt(t *testing.T) {
	short.Skip(t)
	const n = 40 * window
	r := rand.New(rand.NewPCG(1, 1))
	ends := r.Perm(n)
	for name, end := range map[string]func(i int) (int64, uint64){
		"two ends in turns":     func(i int) (int64, uint64) { return n + 2*int64(i%2), 512 << (i % 2) },
		"two ends in no order":  func(i int) (int64, uint64) { return n + 2*int64(ends[i]%2), 512 },
		"ends in no order":      func(i int) (int64, uint64) { return n + 2*int64(ends[i]), 512 },
		"and sizes in no order": func(i int) (int64, uint64) { return n + 2*int64(ends[i]), 512 * (1 + r.Uint64N(9)) },
	} {
		var buffers []Buffer
		for i := range n {
			e, size := end(i)
			buffers = append(buffers, Buffer{int64(i), e, size}, Buffer{int64(n + 2*i + 1), int64(n + 2*i + 2), 512})
		}
		p := newPlanner(buffers)
		if _, ok := p.run(t.Context(), p.bySize(), noBound); !ok {
			t.Fatal("given up")
		}
		all := 0
		for i := range p.buffers {
			all += len(p.taken.during(int32(i)))
		}
		if all > 4*window*len(p.buffers) {
			t.Errorf("%s: of %d buffers %d are looked at for each", name, len(p.buffers), all/len(p.buffers))
		}
	}
}
