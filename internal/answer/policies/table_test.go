package policies

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var table = flag.String("table", "", "write the table of docs/policies.md to this file")

func writeTable(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(*table, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// row writes a line of a table: texts, whole numbers, and ratios.
func row(b *strings.Builder, cells ...any) {
	for _, c := range cells {
		if f, ok := c.(float64); ok {
			fmt.Fprintf(b, "| %.3f ", f)
		} else {
			fmt.Fprintf(b, "| %v ", c)
		}
	}
	b.WriteString("|\n")
}

// The twenty runs without a limit under every policy: the tables of docs/policies.md.
func TestTwentyRuns(t *testing.T) {
	if *table == "" {
		t.Skip("minutes: make policies")
	}
	var reserved, limits strings.Builder
	head := "| run | live MiB |"
	rule := "|---|---|"
	for _, n := range Names {
		if n != LowerBound && n != Managed && n != ManagedPrefetch {
			head, rule = head+" "+n+" |", rule+"---|"
		}
	}
	runs := 0
	for _, dir := range []string{"snapshots", "fresh"} {
		files, err := filepath.Glob("../../../testdata/" + dir + "/*-default.pickle.gz")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := strings.TrimSuffix(filepath.Base(f), ".pickle.gz")
			if strings.Contains(name, "-tight-") {
				continue
			}
			runs++
			r := checked(t, dir+"/"+name)
			a := ask(t, r, Question{Budget: 2 * time.Second})
			aboveBound(t, a)
			compareWithEngine(t, r, a)
			if plan := a.find(t, StaticPlan); *plan.ReservedOverLive > 1.005 {
				t.Errorf("%s: the static plan needs %.4f of the bound", name, *plan.ReservedOverLive)
			}
			about := []any{dir + "/" + strings.TrimSuffix(name, "-default"), a.LowerBound >> 20}
			over, least := about, about
			for _, x := range a.Results {
				if x.Policy == LowerBound || x.Kind == Model {
					continue
				}
				over, least = append(over, ratio(x.PeakReserved, a.LowerBound)), append(least, ratio(x.SmallestLimit, a.LowerBound))
			}
			row(&reserved, over...)
			row(&limits, least...)
		}
	}
	if runs != 20 {
		t.Errorf("%d runs", runs)
	}
	writeTable(t, "Peak reserved over live:\n\n"+head+"\n"+rule+"\n"+reserved.String()+
		"\nSmallest limit over live:\n\n"+head+"\n"+rule+"\n"+limits.String())
}

func ratio(n *uint64, live uint64) any {
	if n == nil {
		return "-"
	}
	return float64(*n) / float64(live)
}
