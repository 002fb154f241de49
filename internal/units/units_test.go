package units

import (
	"math"
	"strings"
	"testing"
)

func TestTorch(t *testing.T) {
	for _, tt := range []struct {
		n    uint64
		want string
	}{
		{0, "0 bytes"},
		{1, "1 bytes"},
		{1023, "1023 bytes"},
		{1024, "1024 bytes"},
		{1025, "1.00 KiB"},
		{1536, "1.50 KiB"},
		{1 << 20, "1024.00 KiB"},
		{1<<20 + 1, "1.00 MiB"},
		{2097152, "2.00 MiB"},
		{20971520, "20.00 MiB"},
		{874 << 20, "874.00 MiB"},
		{1 << 30, "1024.00 MiB"},
		{1<<30 + 1, "1.00 GiB"},
		{150109880320, "139.80 GiB"},
		{1 << 40, "1024.00 GiB"},
		{1 << 50, "1048576.00 GiB"},
		{2092957696, "1.95 GiB"},
		{1034, "1.01 KiB"},
		{1029, "1.00 KiB"}, // halves round as the double does
		{math.MaxUint64, "17179869184.00 GiB"},
	} {
		if got := Torch(tt.n); got != tt.want {
			t.Errorf("Torch(%d) = %q, want %q", tt.n, got, tt.want)
		}
	}
}

func TestWhole(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 512: "512 B", 1 << 10: "1 KiB", 1536: "1.50 KiB", 1<<20 - 1: "1.00 MiB", 1 << 20: "1 MiB", 1<<20 + 1: "1.00 MiB", 3 << 30: "3 GiB",
	} {
		if got := Whole(n); got != want {
			t.Errorf("Whole(%d) = %q, want %q", n, got, want)
		}
	}
	for _, tt := range []struct {
		low, high uint64
		want      string
	}{
		{1 << 20, 10 << 20, "1 to 10 MiB"}, {3 << 19, 2 << 20, "1.50 to 2 MiB"}, {512, 1 << 20, "512 B to 1 MiB"}, {512, 1000, "512 to 1000 B"},
	} {
		if got := FromTo(tt.low, tt.high); got != tt.want {
			t.Errorf("FromTo(%d, %d) = %q, want %q", tt.low, tt.high, got, tt.want)
		}
	}
}

func TestTick(t *testing.T) {
	for _, tt := range []struct {
		n, top uint64
		want   string
	}{
		{0, gib, "0"},
		{gib / 2, 3 * gib, "0.5 GiB"},
		{2 * gib, 3 * gib, "2 GiB"},
		{256 * mib, gib, "0.25 GiB"},
		{256 * mib, 700 * mib, "256 MiB"},
		{512, 900, "512 B"},
	} {
		if got := Tick(tt.n, tt.top); got != tt.want {
			t.Errorf("Tick(%d, %d) = %q, want %q", tt.n, tt.top, got, tt.want)
		}
	}
}

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		n    uint64
		want string
	}{
		{0, "0 B"},
		{512, "512 B"},
		{1023, "1023 B"},
		{1024, "1.00 KiB"},
		{1536, "1.50 KiB"},
		{1<<20 - 6, "1023.99 KiB"},
		{1<<20 - 5, "1.00 MiB"},
		{1<<20 - 1, "1.00 MiB"},
		{1 << 20, "1.00 MiB"},
		{20 << 20, "20.00 MiB"},
		{1<<30 - 5243, "1023.99 MiB"},
		{1<<30 - 5242, "1.00 GiB"},
		{1 << 30, "1.00 GiB"},
		{3 << 29, "1.50 GiB"},
		{1 << 40, "1024.00 GiB"},
	} {
		if got := Size(tt.n); got != tt.want {
			t.Errorf("Size(%d) = %q, want %q", tt.n, got, tt.want)
		}
	}
}

// TestSizeEdges: no size is written as 1024.00 of a unit that has a larger one.
func TestSizeEdges(t *testing.T) {
	for _, edge := range []uint64{1 << 20, 1 << 30} {
		for n := edge - edge/100; n < edge; n += 1 + edge>>20 {
			if s := Size(n); strings.HasPrefix(s, "1024") || strings.HasPrefix(s, "0.") {
				t.Fatalf("Size(%d) = %q", n, s)
			}
		}
	}
}

// TestSizeUp: what is written is never less than the size, and as near as two
// decimals allow.
func TestSizeUp(t *testing.T) {
	for _, tt := range []struct {
		n    uint64
		want string
	}{
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.00 KiB"},
		{1025, "1.01 KiB"},
		{1<<20 - 6, "1.00 MiB"},
		{20 << 20, "20.00 MiB"},
		{20<<20 + 1, "20.01 MiB"},
		{1<<30 - 5243, "1.00 GiB"},
		{1300<<20 - 60<<20, "1.22 GiB"},
		{3 << 29, "1.50 GiB"},
		{1<<40 + 1, "1024.01 GiB"},
		{math.MaxUint64, "17179869184.00 GiB"},
	} {
		if got := SizeUp(tt.n); got != tt.want {
			t.Errorf("SizeUp(%d) = %q, want %q", tt.n, got, tt.want)
		}
	}
	for n := uint64(1); n < 1<<50; n += n/7 + 1 {
		back, err := Parse(SizeUp(n))
		if unit, _ := unitOf(n); err != nil || back+1 < n || back > n+unit/100+1 { // Parse rounds to whole bytes
			t.Fatalf("SizeUp(%d) = %q, which is %d, %v", n, SizeUp(n), back, err)
		}
	}
}

func TestDelta(t *testing.T) {
	for _, tt := range []struct {
		n    int64
		want string
	}{
		{0, "0 B"}, {1, "+1 B"}, {-1, "-1 B"}, {3 << 29, "+1.50 GiB"}, {-20 << 20, "-20.00 MiB"}, {math.MinInt64, "-8589934592.00 GiB"},
	} {
		if got := Delta(tt.n); got != tt.want {
			t.Errorf("Delta(%d) = %q, want %q", tt.n, got, tt.want)
		}
	}
}

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		n    int64
		want string
	}{
		{0, "0"},
		{7, "7"},
		{999, "999"},
		{1000, "1,000"},
		{18435, "18,435"},
		{123456, "123,456"},
		{1234567, "1,234,567"},
		{-1, "-1"},
		{-999, "-999"},
		{-1000, "-1,000"},
		{math.MinInt64, "-9,223,372,036,854,775,808"},
	} {
		if got := Count(tt.n); got != tt.want {
			t.Errorf("Count(%d) = %q, want %q", tt.n, got, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		s    string
		want uint64
	}{
		{"80GiB", 80 << 30},
		{"80GB", 80e9},
		{"80G", 80 << 30},
		{"512M", 512 << 20},
		{"1.5GiB", 3 << 29},
		{"123456", 123456},
		{"20 MiB", 20 << 20},
		{" 20\tmib ", 20 << 20},
		{"1kb", 1000},
		{"1K", 1024},
		{"2t", 2 << 40},
		{"2TB", 2e12},
		{"2TiB", 2 << 40},
		{"0", 0},
		{"7B", 7},
		{"7 bytes", 7},
		{"1 byte", 1},
		{".5k", 512},
		{"5.k", 5120},
		{"1.3KiB", 1331},
		{"0.3333333333333333333333333333TiB", 366503875925},
		{"18446744073709551615", math.MaxUint64},
		{"16777215.999999TiB", 18446744073708452104},
		{"1024.00 KiB", 1 << 20},
		{"139.80 GiB", 150109106995},
	} {
		if got, err := Parse(tt.s); err != nil || got != tt.want {
			t.Errorf("Parse(%q) = %d, %v; want %d", tt.s, got, err, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ s, why string }{
		{"", "does not begin with a number"},
		{"  ", "does not begin with a number"},
		{"GiB", "does not begin with a number"},
		{".", "does not begin with a number"},
		{"+5", "does not begin with a number"},
		{"NaN", "does not begin with a number"},
		{"-5", "negative"},
		{"-1GiB", "negative"},
		{"1.2.3", `"1.2.3" is not a number`},
		{"5 apples", `unknown unit "apples"`},
		{"1e9", `unknown unit "e9"`},
		{"1,5GiB", `unknown unit ",5GiB"`},
		{"5 5", `unknown unit "5"`},
		{"1PiB", `unknown unit "PiB"`},
		{"18446744073709551616", "64 bits"},
		{"16777216TiB", "64 bits"},
		{"18446744073709551615.5", "no unit"},
		{"7.43", "no unit"},
		{"99999999999999999999.5B", "64 bits"},
		{"99999999999G", "64 bits"},
	} {
		_, err := Parse(tt.s)
		if err == nil || !strings.Contains(err.Error(), tt.why) || !strings.Contains(err.Error(), "80GiB") {
			t.Errorf("Parse(%q): %v, want %q and examples", tt.s, err, tt.why)
		}
	}
}

// FuzzParse: no panic, and reading what was written comes within its rounding.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"80GiB", "1.5g", "123456", "20 MiB", "-1", "1e9", "18446744073709551615.5", ".", "0.333333333333333333333TB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Parse(s)
		if err != nil {
			return
		}
		for _, text := range []string{Size(n), Torch(n)} {
			back, err := Parse(text)
			if err != nil {
				if n > math.MaxUint64-gib {
					return // rounded up past the end
				}
				t.Fatalf("%q is %d, written %q: %v", s, n, text, err)
			}
			if diff := math.Abs(float64(back) - float64(n)); diff > 0.0051*gib && diff > 1e-9*float64(n) {
				t.Fatalf("%q is %d, written %q, read as %d", s, n, text, back)
			}
		}
	})
}

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "5GiB": 5 << 30, "5 B": 5, "512K": 512 << 10, "1048576": 1 << 20, "85899345920": 80 << 30, " 2097152 ": 2 << 20,
	} {
		if n, err := ParseMemory(text); err != nil || n != want {
			t.Errorf("%q: %d, %v; want %d", text, n, err, want)
		}
	}
	for text, want := range map[string]string{
		"5":       "5 without a unit is 5 bytes: 5GiB? (5B if you mean bytes)",
		" 80 ":    "80 without a unit is 80 bytes: 80GiB? (80B if you mean bytes)",
		"40960":   "40960 without a unit is 40960 bytes: 40960MiB? (40960B if you mean bytes)",
		"1048575": "1048575 without a unit is 1048575 bytes: 1048575MiB? (1048575B if you mean bytes)",
		"x":       `size "x": it does not begin with a number; write for example 80GiB, 80GB (powers of ten), 512M, 1.5GiB or a number of bytes`,
	} {
		if n, err := ParseMemory(text); err == nil || err.Error() != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}
