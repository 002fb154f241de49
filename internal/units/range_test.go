package units

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseTorch(t *testing.T) {
	for _, tt := range []struct {
		s    string
		want Range
	}{
		{"0 bytes", Exactly(0)},
		{"1024 bytes", Exactly(1024)},
		{"1.00 KiB", Range{1025, 1027, 1029}}, // the text names 1024, which prints as bytes
		{"1.50 KiB", Range{1531, 1536, 1541}},
		{"1024.00 KiB", Range{1<<20 - 5, 1 << 20, 1 << 20}},
		{"20.00 MiB", Range{20966278, 20971520, 20976762}},
		{"1024.00 MiB", Range{1<<30 - 5242, 1 << 30, 1 << 30}},
		{"139.80 GiB", Range{150103738287, 150109106995, 150114475704}},
		{"17179869184.00 GiB", Range{math.MaxUint64 - 5368830, math.MaxUint64, math.MaxUint64}},
	} {
		got, err := ParseTorch(tt.s)
		if err != nil || got != tt.want {
			t.Errorf("ParseTorch(%q) = %+v, %v; want %+v", tt.s, got, err, tt.want)
		}
		for _, n := range []uint64{got.Low, got.Mid, got.High} {
			if Torch(n) != tt.s {
				t.Errorf("%q: %d prints as %q", tt.s, n, Torch(n))
			}
		}
		if got.Low > 0 && Torch(got.Low-1) == tt.s || got.High < math.MaxUint64 && Torch(got.High+1) == tt.s {
			t.Errorf("%q: %+v is not all of it", tt.s, got)
		}
	}
}

func TestParseTorchRefuses(t *testing.T) {
	for _, s := range []string{
		"", "20", "MiB", "20 MiB", "20.0 MiB", "20.00MiB", "20.00 MB", "0.50 GiB", "0.99 KiB", "1024.01 KiB", "1025 bytes", "007 bytes",
		"-1.00 GiB", "+1.00 GiB", "1e3 bytes", "020.00 MiB", "1.00 TiB", "17179869184.01 GiB", "99999999999999999999.00 GiB", ".50 KiB",
	} {
		if r, err := ParseTorch(s); err == nil || !strings.Contains(err.Error(), "20.00 MiB") {
			t.Errorf("ParseTorch(%q) = %+v, %v", s, r, err)
		}
	}
}

func TestParseRounded(t *testing.T) {
	for _, tt := range []struct {
		s    string
		want Range
	}{
		{"5.56 GB", Range{5964635832, 5970004541, 5975373250}},
		{"256 bytes", Exactly(256)},
		{"20 MiB", Range{20447232, 20971520, 21495808}},
		{"0.50 GiB", Range{531502203, 536870912, 542239621}},
		{"1 TB", Range{1 << 39, 1 << 40, 3 << 39}},
		{"0 B", Exactly(0)},
	} {
		if got, err := ParseRounded(tt.s); err != nil || got != tt.want {
			t.Errorf("ParseRounded(%q) = %+v, %v; want %+v", tt.s, got, err, tt.want)
		}
	}
	for _, s := range []string{"", "5", "5 ", " GB", "x GB", "5  ", "5 apples", "5 kittens", "1.2.3 GB", "99999999999 GB", "-5 GB"} {
		if r, err := ParseRounded(s); err == nil {
			t.Errorf("ParseRounded(%q) = %+v", s, r)
		}
	}
}

func TestRangeArithmetic(t *testing.T) {
	a, b := Range{10, 15, 20}, Range{5, 6, 12}
	if got := a.Add(b); got != (Range{15, 21, 32}) {
		t.Errorf("sum %+v", got)
	}
	if got := a.Sub(b); got != (Range{0, 9, 15}) {
		t.Errorf("difference %+v", got)
	}
	if got := Exactly(math.MaxUint64).Add(b); got != Exactly(math.MaxUint64) {
		t.Errorf("sum past the end %+v", got)
	}
	if !Exactly(3).Exact() || a.Exact() || !a.Contains(20) || a.Contains(21) {
		t.Error("Exact or Contains is wrong")
	}
}

// TestTorchRoundTrip: what is printed reads back as a range that holds it and
// whose ends print the same.
func TestTorchRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 20000 {
		n := rng.Uint64() >> rng.IntN(64)
		if i%3 == 0 {
			n = n >> 9 << 9
		}
		text := Torch(n)
		r, err := ParseTorch(text)
		if err != nil || !r.Contains(n) || Torch(r.Low) != text || Torch(r.High) != text || !r.Contains(r.Mid) {
			t.Fatalf("%d prints as %q, read as %+v, %v", n, text, r, err)
		}
	}
}

func BenchmarkParseTorch(b *testing.B) {
	for b.Loop() {
		if _, err := ParseTorch("139.80 GiB"); err != nil {
			b.Fatal(err)
		}
	}
}
