package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	commands := []string{"check", "convert", "diff", "events", "explain", "gen", "stats", "tune", "verify", "whatif"}
	for word, want := range map[string]string{
		"explian": "explain", "verfy": "verify", "EXPLAIN": "explain", "ev": "events", "stat": "stats", "whatf": "whatif",
		"tnue": "", "gpt2": "", "x": "", "": "", "deploy": "",
	} {
		if got := Nearest(word, commands); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("adamw_fused", []string{"adamw", "adamw-fused"}); got != "adamw-fused" {
		t.Errorf("with _ for -: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for pair, want := range map[string]int{"a a": 0, "abc abd": 1, "abc ab": 1, "abc xyz": 3, "abcd bacd": 2} {
		a, b, _ := strings.Cut(pair, " ")
		if got := Distance(a, b); got != want {
			t.Errorf("%s and %s are %d apart, want %d", a, b, got, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	if got := DidYouMean("alway", []string{"idle", "always"}); got != " (did you mean always?)" {
		t.Error(got)
	}
	if got := DidYouMean("tuesday", []string{"idle", "always"}); got != "" {
		t.Error(got)
	}
}
