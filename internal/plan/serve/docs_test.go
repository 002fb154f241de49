package serve

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/units"
)

var updateDocs = flag.Bool("update-docs", false, "rewrite the table of logs in docs/serve.md")

// TestDocs compares the table of docs/serve.md with the logs and the plans.
func TestDocs(t *testing.T) {
	const file, begin, end = "../../../docs/serve.md", "<!-- logs -->\n", "<!-- /logs -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	was, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", file)
	}
	want := table(t)
	if was == want {
		return
	}
	if !*updateDocs {
		t.Fatalf("the table of %s is not that of the logs: run go test ./internal/plan/serve -run Docs -update-docs", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table writes a line for every log.
func table(t *testing.T) string {
	f := readLogs(t)
	plans := map[*logRow]compared{}
	good, all := 0, 0
	for _, c := range f.compare(t) {
		plans[c.row] = c
		all++
		if math.Abs(c.off) <= 0.015 {
			good++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of the %d plans are within 1.5 %% of the card's memory.\n\n", good, all)
	b.WriteString("| model | card | vLLM | flags | blocks or tokens | cache, GiB | planned | off, of the card |\n|---|---|---|---|---:|---:|---:|---:|\n")
	for i := range f.Logs {
		row := &f.Logs[i]
		size := units.Count(row.Blocks + row.Tokens)
		if row.Blocks+row.Tokens == 0 {
			size = ""
		}
		cache, planned, off := "", "cache only", ""
		if row.KV > 0 {
			cache = fmt.Sprintf("%.2f", row.KV)
		}
		if c, ok := plans[row]; ok {
			planned, off = fmt.Sprintf("%.2f", float64(c.plan.Available)/gib), fmt.Sprintf("%+.1f %%", 100*c.off)
			if cache == "" {
				cache = fmt.Sprintf("(%.2f)", c.want)
			}
		}
		fmt.Fprintf(&b, "| [%s](%s) | %s | %s | %s | %s | %s | %s | %s |\n", row.Model, row.URL, row.Card, row.VLLM, row.flags(), size, cache, planned, off)
	}
	return b.String()
}

// flags writes those that were given.
func (row *logRow) flags() string {
	said := []string{fmt.Sprintf("len %d", row.MaxModelLen), fmt.Sprintf("util %g", row.Utilization)}
	add := func(given bool, format string, args ...any) {
		if given {
			said = append(said, fmt.Sprintf(format, args...))
		}
	}
	add(row.TP > 0, "tp %d", row.TP)
	add(row.MaxSeqs > 0, "seqs %d", row.MaxSeqs)
	add(row.Batched > 0, "batched %d", row.Batched)
	add(row.BlockSize > 0, "block %d", row.BlockSize)
	add(row.Quantised != "", "%s", row.Quantised)
	add(row.KVType != "", "cache %s", row.KVType)
	add(row.LoRARank > 0, "LoRA %d", row.LoRARank)
	add(row.LoRA, "LoRA")
	add(row.Eager, "eager")
	add(row.V0, "V0")
	add(row.PrefixCaching, "prefix caching")
	return strings.Join(said, ", ")
}
