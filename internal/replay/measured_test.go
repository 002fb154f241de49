package replay_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

var table = flag.String("table", "", "write the comparison with the measured runs to this file, as Markdown")

// measured is one real run on the GPU: what the memory did under some settings.
type measured struct {
	Name    string `json:"name"`
	Label   string `json:"label"`
	Conf    string `json:"conf"`
	LimitMB uint64 `json:"limit_mb"`
	Peak    uint64 `json:"reserved_bytes.all.peak"`
	OOMs    int    `json:"num_ooms"`
	Retries int64  `json:"num_alloc_retries"`
}

// The sets of measured runs, each beside the snapshots it is compared with. The
// second was recorded when the model was finished: other seeds, two other
// workloads, other settings.
var measuredSets = []struct {
	file, snapshots string
	peaks, verdicts int // how many are judged
}{
	{"measured.jsonl", "snapshots", 62, 70},
	{"fresh/measured.jsonl", "fresh", 78, 50},
}

func measurements(t testing.TB, file string) []measured {
	t.Helper()
	var out []measured
	for _, m := range jsonl.Must[measured](t, "../../testdata/"+file) {
		if m.Label != "async" { // another allocator
			out = append(out, m)
		}
	}
	return out
}

func checked(t testing.TB, file string) *replay.Program {
	t.Helper()
	f, err := snapshot.Open(context.Background(), "../../testdata/"+file+".pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return programOf(t, f.Traces[0])
}

func programOf(t testing.TB, tr *trace.Trace) *replay.Program {
	t.Helper()
	v, err := verify.Run(context.Background(), tr, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v.Program()
}

// The recording of each workload under default settings, run under every
// setting and limit that was also run for real. Peaks of streams_graphs depend
// on the timing of the GPU and are not judged.
func TestMeasured(t *testing.T) {
	short.Skip(t)
	var doc strings.Builder
	for _, set := range measuredSets {
		fmt.Fprintf(&doc, "\n| %s: workload | setting | limit | measured peak reserved | predicted | error | measured outcome | predicted |\n", set.snapshots)
		fmt.Fprintln(&doc, "|---|---|---|---|---|---|---|---|")
		c := comparison{t: t, doc: &doc, programs: map[string]*replay.Program{}}
		for _, m := range measurements(t, set.file) {
			c.compare(m, set.snapshots)
		}
		if c.peaks != set.peaks || c.verdicts != set.verdicts {
			t.Errorf("%s: %d peaks and %d verdicts were compared, want %d and %d", set.file, c.peaks, c.verdicts, set.peaks, set.verdicts)
		}
		t.Logf("%s: %d of %d peaks exact, the worst %.2f %% off; %d verdicts", set.file, c.exact, c.peaks, 100*c.worst, c.verdicts)
	}
	if *table != "" {
		if err := os.WriteFile(*table, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// comparison is one set of measured runs and what was predicted for them.
type comparison struct {
	t                      *testing.T
	doc                    *strings.Builder
	programs               map[string]*replay.Program
	peaks, exact, verdicts int
	worst                  float64
}

func (c *comparison) compare(m measured, snapshots string) {
	p := c.programs[m.Name]
	if p == nil {
		p = checked(c.t, snapshots+"/"+m.Name+"-default")
		if !p.Check.Identical || p.Ignored != 0 {
			c.t.Errorf("%s: the check fails: %v", m.Name, p.Check.First)
		}
		c.programs[m.Name] = p
	}
	s, err := settings.Parse(m.Conf)
	if err != nil {
		c.t.Fatal(err)
	}
	o, err := p.Run(context.Background(), replay.Conditions{Settings: s, Limit: m.LimitMB << 20})
	if err != nil {
		c.t.Fatalf("%s %s: %v", m.Name, m.Label, err)
	}
	off := float64(o.Reserved.Bytes)/float64(m.Peak) - 1
	limit := "none"
	switch {
	case m.LimitMB > 0:
		limit = units.Size(m.LimitMB << 20)
		c.verdicts++
		if o.Fails != (m.OOMs > 0) {
			c.t.Errorf("%s %s: fails %v, measured %d ooms", m.Name, m.Label, o.Fails, m.OOMs)
		}
	case m.Name != "streams_graphs":
		c.peaks++
		c.worst = max(c.worst, math.Abs(off))
		if o.Reserved.Bytes == m.Peak {
			c.exact++
		}
		if math.Abs(off) > 0.01 {
			c.t.Errorf("%s %s: peak reserved %d, measured %d (%+.2f %%)", m.Name, m.Label, o.Reserved.Bytes, m.Peak, 100*off)
		}
	}
	conf := m.Conf
	if conf == "" {
		conf = "(defaults)"
	}
	fmt.Fprintf(c.doc, "| %s | `%s` | %s | %s | %s | %+.2f %% | %s | %s |\n", m.Name, conf, limit,
		units.Size(m.Peak), units.Size(o.Reserved.Bytes), 100*off,
		outcomeText(m.OOMs > 0, int64(m.OOMs), m.Retries), outcomeText(o.Fails, o.OOMs, o.Retries))
}

func outcomeText(fails bool, ooms, retries int64) string {
	if fails {
		return fmt.Sprintf("fails (%d OOM, %d retries)", ooms, retries)
	}
	return fmt.Sprintf("passes (%d retries)", retries)
}
