package explain

import (
	"regexp"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

var printedSize = regexp.MustCompile(`\d+(\.\d+)? (bytes|[KMG]iB|[KMG]B)\b`)

// Sizes up to the end of 64 bits, in every place of every message and in every
// two of them, give a report as other sizes do.
func TestAbsurdFigures(t *testing.T) {
	reports := 0
	for _, m := range short.Some(wild, 8) {
		places := printedSize.FindAllStringIndex(m.text, -1)
		for _, size := range []string{"17179869184.00 GiB", "17179869183.50 GiB", "8589934592.00 GiB"} {
			for i := range places {
				for j := i; j < len(places); j++ {
					text := replaced(m.text, size, places[j])
					if i < j {
						text = replaced(text, size, places[i])
					}
					all, err := message.Parse(text)
					if err != nil {
						continue // a wording whose numbers are in bytes
					}
					for _, o := range all {
						reports++
						if r := fromText(t, Input{Message: o}); t.Failed() {
							t.Fatalf("%s\n%s", text, r.Summary)
						}
					}
				}
			}
		}
	}
	if reports < short.Times(1000) {
		t.Errorf("only %d reports", reports)
	}
}

func replaced(text, by string, at []int) string { return text[:at[0]] + by + text[at[1]:] }
