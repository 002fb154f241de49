package watch

import "testing"

func TestRuleWrites(t *testing.T) {
	for _, c := range []struct {
		expr  string
		value float64
		want  string
	}{
		{"allocated", 3 << 29, "1.50 GiB"},
		{"slope_per_step(allocated)", 23_070_000, "22.00 MiB per step"},
		{"rate(reserved)", -2 << 20, "-2.00 MiB/s"},
		{"headroom/device_total", 0.034, "3.4 %"},
		{"100*(inactive_split/reserved)", 50, "50"},
		{"reserved - 2*allocated", 1024, "1.00 KiB"},
		{"rate(num_ooms)", 0.016667, "0.01667/s"},
		{"num_ooms + num_alloc_retries", 12345, "12,345"},
		{"silent()", 61, "61.0 s"},
		{"step_us/2", 1500, "1.50 ms"},
		{"allocated*reserved", 7, "7"},
	} {
		r := mustRules(t, "a: "+c.expr+" > 1 -> log")[0]
		if got := r.write(c.value); got != c.want {
			t.Errorf("%s: %q, want %q", c.expr, got, c.want)
		}
	}
}
