package palette

import (
	"math"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Every category and every kind of a plan has a colour, and only the unknown is
// grey.
func TestNames(t *testing.T) {
	known := map[string]Shade{}
	for _, n := range Names() {
		if _, twice := known[n.Name]; twice {
			t.Errorf("%s has two colours", n.Name)
		}
		known[n.Name] = n.Shade
	}
	var names []string
	for _, c := range findings.Categories() {
		names = append(names, strings.ReplaceAll(string(c), "_", " "))
	}
	for _, k := range ledger.Kinds() {
		names = append(names, k.String())
	}
	for _, name := range names {
		shade, ok := known[name]
		if !ok {
			t.Errorf("%s has no colour", name)
		}
		if grey := shade == Grey; grey != (name == string(findings.Unknown)) {
			t.Errorf("%s is grey: %t", name, grey)
		}
	}
}

// No two colours are so close that the eye takes them for one.
func TestTellApart(t *testing.T) {
	var named []Shade
	for _, n := range Names() {
		named = append(named, n.Shade)
	}
	for what, list := range map[string][]Shade{"names": named, "ordinals": append(Ordinals(), Grey)} {
		for i, a := range list {
			for _, b := range list[:i] {
				if d := distance(a.Light, b.Light); d < 18 {
					t.Errorf("%s: %v and %v are %.0f apart on a light ground", what, a.Light, b.Light, d)
				}
				if d := distance(a.Dark, b.Dark); d < 18 {
					t.Errorf("%s: %v and %v are %.0f apart on a dark ground", what, a.Dark, b.Dark, d)
				}
			}
		}
	}
	if n := len(Ordinals()); n != Most {
		t.Errorf("%d ordinals, want %d", n, Most)
	}
}

func distance(a, b RGB) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}
