package watch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// training returns samples of a job like those of a training run: seconds apart,
// with steps of some MiB up and down.
func training(gpu int, from, n int, begin time.Time, rng *rand.Rand) []span {
	spans := make([]span, n)
	for i := range spans {
		r := Row{GPU: gpu}
		seq := int64(from + i)
		allocated := int64(20<<30) + int64(rng.IntN(4<<20))*512
		r.V = [columns]int64{
			seq, begin.UnixMicro() + seq*1e6 + int64(rng.IntN(2000)), seq * 2, 480_000 + int64(rng.IntN(5000)), allocated, allocated + 1<<20, 24 << 30,
			allocated - 1<<20, 24<<30 - allocated - int64(rng.IntN(1000))*512, 1 << 30, 23 << 30, 24 << 30, 50 << 30, 80 << 30, unknown,
			5<<30 + int64(rng.IntN(100))*4096, seq / 1000, 0, 300 + seq/100, 20,
		}
		spans[i] = single(r)
	}
	return spans
}

func TestBlock(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	begin := time.Unix(1_800_000_000, 0)
	spans := append(training(0, 1, 120, begin, rng), training(3, 1, 120, begin, rng)...)
	for _, wide := range []bool{false, true} {
		want := spans
		if wide {
			want = join(spans, 10*time.Second)
			if len(want) < 24 || len(want) > 26 {
				t.Errorf("120 s in %d spans", len(want))
			}
		}
		data := encode(want, wide)
		h, got, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(span{})); d != "" {
			t.Error(d)
		}
		if h.first != want[0].V[Seq] || h.last != 120 || h.wide != wide {
			t.Errorf("head: %+v", h)
		}
		for n := range len(data) {
			if _, _, err := decode(data[:n]); err == nil {
				t.Errorf("%d of %d bytes are a block", n, len(data))
			}
		}
		t.Logf("%.1f bytes a row", float64(len(data))/float64(len(want)))
	}
}

func TestJoin(t *testing.T) {
	at := func(second, allocated int64) span {
		r := Row{}
		r.V[Time], r.V[Allocated], r.V[Seq] = second*1e6, allocated, second+1
		return single(r)
	}
	got := join([]span{at(0, 5), at(1, 9), at(9, unknown), at(10, 1), at(19, 2)}, 10*time.Second)
	if len(got) != 2 {
		t.Fatalf("%d spans", len(got))
	}
	for i, want := range [][3]int64{{5, 9, unknown}, {1, 2, 2}} {
		low, high := got[i].extremes(Allocated)
		if low != want[0] || high != want[1] || got[i].V[Allocated] != want[2] {
			t.Errorf("span %d: %d, %d, %d, want %v", i, low, high, got[i].V[Allocated], want)
		}
	}
}

func FuzzBlock(f *testing.F) {
	f.Add(encode(training(0, 1, 3, time.Unix(0, 0), rand.New(rand.NewPCG(1, 2))), true))
	f.Fuzz(func(t *testing.T, data []byte) { decode(data) })
}
