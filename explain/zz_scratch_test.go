package explain

import (
	"os"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/snapshot/message"
)

func TestScratch(t *testing.T) {
	raw, _ := os.ReadFile("/tmp/scratch/msgs.txt")
	for line := range strings.Lines(string(raw)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "|")
		all, err := message.Parse(strings.ReplaceAll(text, `\n`, "\n"))
		if err != nil || len(all) != 1 {
			t.Errorf("%s: %v %d", name, err, len(all))
			continue
		}
		show(t, name, all[0])
	}
}

func show(t *testing.T, name string, o *message.OOM) {
	r, err := FromText(Input{Message: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("== %s: %s %s cap %v break %v\n%s", name, r.Verdict, r.Confidence, r.UnderCap, r.BreakEven, r.Summary)
	for _, l := range r.Arithmetic {
		t.Log("   ", l)
	}
	for _, l := range r.Alternatives {
		t.Log("   ALT", l)
	}
	for _, l := range r.Fixes {
		t.Log("   FIX", l.Kind, l.Detail)
	}
	for _, l := range r.Notes {
		t.Log("   NOTE", l)
	}
}
