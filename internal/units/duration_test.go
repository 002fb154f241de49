package units

import "testing"

func TestDuration(t *testing.T) {
	for _, tt := range []struct {
		ns   float64
		want string
	}{
		{0, "0.00 ns"},
		{0.456, "0.46 ns"},
		{9.994, "9.99 ns"},
		{9.996, "10.0 ns"},
		{93.28, "93.3 ns"},
		{99.96, "100 ns"},
		{999.4, "999 ns"},
		{999.6, "1.00 us"},
		{1250, "1.25 us"},
		{184_000, "184 us"},
		{999_400, "999 us"},
		{18_433_000, "18.4 ms"},
		{999_700_000, "1.00 s"},
		{2.1e9, "2.10 s"},
		{123.4e9, "123 s"},
		{4e12, "4000 s"},
		{-1250, "-1.25 us"},
	} {
		if got := Duration(tt.ns); got != tt.want {
			t.Errorf("Duration(%v) = %q, want %q", tt.ns, got, tt.want)
		}
	}
}
