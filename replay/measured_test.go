package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

var table = flag.String("table", "", "write the comparison with the measured runs to this file, as Markdown")

// measured is one real run on the GPU: what the memory did under some settings.
type measured struct {
	Name    string  `json:"name"`
	Label   string  `json:"label"`
	Conf    string  `json:"conf"`
	LimitMB uint64  `json:"limit_mb"`
	Peak    uint64  `json:"reserved_bytes.all.peak"`
	Active  uint64  `json:"active_bytes.all.peak"`
	OOMs    int     `json:"num_ooms"`
	Retries int64   `json:"num_alloc_retries"`
	Mallocs int64   `json:"num_device_alloc"`
	Frees   int64   `json:"num_device_free"`
	Died    *string `json:"oom"`
}

func measurements(t testing.TB) []measured {
	t.Helper()
	raw, err := os.ReadFile("../testdata/measured.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []measured
	for line := range bytes.Lines(raw) {
		var m measured
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if m.Label != "async" { // another allocator
			out = append(out, m)
		}
	}
	return out
}

func checked(t testing.TB, file string) *Program {
	t.Helper()
	f, err := snapshot.Open(context.Background(), "../testdata/"+file+".pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := CheckProgram(context.Background(), f.Traces[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The recording of each workload under default settings, run under every
// setting and limit that was also run for real. Peaks of streams_graphs depend
// on the timing of the GPU and are not judged.
func TestMeasured(t *testing.T) {
	var doc strings.Builder
	fmt.Fprintln(&doc, "| workload | setting | limit | measured peak reserved | predicted | error | measured outcome | predicted |")
	fmt.Fprintln(&doc, "|---|---|---|---|---|---|---|---|")
	programs := map[string]*Program{}
	peaks, exact, verdicts := 0, 0, 0
	worst := 0.0
	for _, m := range measurements(t) {
		p := programs[m.Name]
		if p == nil {
			p = checked(t, "snapshots/"+m.Name+"-default")
			if !p.Check.Identical || p.Ignored != 0 {
				t.Errorf("%s: the check fails: %v", m.Name, p.Check.First)
			}
			programs[m.Name] = p
		}
		s, err := settings.Parse(m.Conf)
		if err != nil {
			t.Fatal(err)
		}
		o, err := p.Run(context.Background(), Conditions{Settings: s, Limit: m.LimitMB << 20})
		if err != nil {
			t.Fatalf("%s %s: %v", m.Name, m.Label, err)
		}
		off := float64(o.Reserved.Bytes)/float64(m.Peak) - 1
		setting, limit := strings.TrimPrefix(m.Label, "tight-"), "none"
		if m.LimitMB > 0 {
			limit = units.Size(m.LimitMB << 20)
			verdicts++
			if o.Fails != (m.OOMs > 0) {
				t.Errorf("%s %s: fails %v, measured %d ooms", m.Name, m.Label, o.Fails, m.OOMs)
			}
		} else if m.Name != "streams_graphs" {
			peaks++
			worst = max(worst, math.Abs(off))
			if o.Reserved.Bytes == m.Peak {
				exact++
			}
			if math.Abs(off) > 0.01 {
				t.Errorf("%s %s: peak reserved %d, measured %d (%+.2f %%)", m.Name, m.Label, o.Reserved.Bytes, m.Peak, 100*off)
			}
		}
		outcome := func(fails bool, ooms int64, retries int64) string {
			if fails {
				return fmt.Sprintf("fails (%d OOM, %d retries)", ooms, retries)
			}
			return fmt.Sprintf("passes (%d retries)", retries)
		}
		fmt.Fprintf(&doc, "| %s | %s | %s | %s | %s | %+.2f %% | %s | %s |\n", m.Name, setting, limit,
			units.Size(m.Peak), units.Size(o.Reserved.Bytes), 100*off,
			outcome(m.OOMs > 0, int64(m.OOMs), m.Retries), outcome(o.Fails, o.OOMs, o.Retries))
	}
	if peaks != 62 || verdicts != 70 {
		t.Errorf("%d peaks and %d verdicts were compared, want 62 and 63 + 7", peaks, verdicts)
	}
	t.Logf("%d of %d peaks exact, the worst %.2f %% off; %d verdicts", exact, peaks, 100*worst, verdicts)
	if *table != "" {
		if err := os.WriteFile(*table, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
