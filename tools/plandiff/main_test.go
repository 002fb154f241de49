package main

import (
	"bufio"
	"strings"
	"testing"
)

// Another recording stands in for the plan, so that what is printed does not
// change with the planner.
func TestPrint(t *testing.T) {
	tests := []struct {
		name, args string
		want       []string
		never      string
	}{
		{
			"the same run", "llama -with llama",
			[]string{
				"phase         recorded   planned     equal   missing     extra     moved",
				"backward2          546       546       546         0         0         0   100.00%   874.03 MiB  874.03 MiB        0 B",
				"births covered: >= 1 MiB 100.00 % (step 3 100.00 %), all 100.00 % (step 3 100.00 %)",
				"peak reserved   measured 1016.00 MiB  planned 1016.00 MiB  +0.000 % (0 B)",
			},
			"===",
		},
		{
			"the outputs are held", "llama -with llama_noclose -phase backward2 -context 0",
			[]string{"=== backward2\n  ... 544 equal\n<         #1119   F              4  never planned"},
			"=== backward1",
		},
		{
			"only large tensors", "-min 1MiB llama -phase backward2 -with llama_sdpa -context 0 -limit 1",
			[]string{"-         #1177   A     14,155,776", "differing rows more; -limit 0 prints all"},
			"110,592",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := printed(t, tt.args)
			for _, w := range tt.want {
				if !strings.Contains(got, w) {
					t.Errorf("%q is not in\n%s", w, got)
				}
			}
			if strings.Contains(got, tt.never) {
				t.Errorf("%q is in\n%s", tt.never, got)
			}
		})
	}
}

func printed(t *testing.T, args string) string {
	t.Helper()
	var b strings.Builder
	out := bufio.NewWriter(&b)
	if err := run(out, strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	out.Flush()
	return b.String()
}

func TestRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                    "which case?",
		"nothing":             `no recording "nothing"`,
		"-all nothing*":       "no recording is called like that",
		"-table 99":           "no such measured case",
		"llama -min much":     "much",
		"llama -with nothing": `no recording "nothing"`,
	} {
		err := run(bufio.NewWriter(&strings.Builder{}), strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", args, err, want)
		}
	}
}

// A panic of the planner becomes an error that says where.
func TestPlanSurvives(t *testing.T) {
	if _, err := execute(nil); err == nil || !strings.Contains(err.Error(), "internal/test/plancompare/spec.go") {
		t.Errorf("error %v", err)
	}
}

func TestVerdict(t *testing.T) {
	b := bar{what: "allocated", median: 0.001, max: 0.01}
	tests := []struct {
		errs []float64
		want bool
	}{
		{[]float64{0, 0.0005, 0.009}, true},
		{[]float64{0, 0.002, 0.009}, false}, // the median
		{[]float64{0, 0.0005, 0.011}, false},
		{[]float64{0.0001, 0.0019}, true}, // the mean of the middle two
	}
	for _, tt := range tests {
		if _, _, ok := b.holds(tt.errs); ok != tt.want {
			t.Errorf("%v: %v", tt.errs, ok)
		}
	}
}
