package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func checked(t testing.TB, file string) *replay.Program {
	t.Helper()
	f, err := snapshot.Open(context.Background(), "../testdata/"+file+".pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.CheckProgram(context.Background(), f.Traces[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLook(t *testing.T) {
	raw, _ := os.ReadFile("../testdata/measured.jsonl")
	for line := range bytes.Lines(raw) {
		var m struct {
			Name, Label string
			Limit       uint64 `json:"limit_mb"`
		}
		json.Unmarshal(line, &m)
		if m.Label != "tight-default" {
			continue
		}
		for _, limit := range []uint64{m.Limit << 20, 0} {
			p := checked(t, "snapshots/"+m.Name+"-tight-default")
			begin := time.Now()
			r, err := FromSnapshot(context.Background(), Input{Program: p, Limit: limit})
			if err != nil {
				t.Error(m.Name, err)
				continue
			}
			t.Logf("%s limit %d: %s %s %v cap %v\n  %s\n  alternatives %v break even %v", m.Name, limit>>20, r.Verdict, r.Confidence, time.Since(begin), r.UnderCap, r.Summary, r.Alternatives, size(r.BreakEven))
			for _, f := range r.Fixes {
				t.Logf("    %s %s limit %v bytes %v until %v: %s", f.Kind, f.Settings, size(f.SmallestLimit), size(f.Bytes), *f.UntilEvent, f.Detail)
			}
			for _, f := range r.Findings {
				t.Logf("    %s %v %v %s: %s", f.Kind, units.Size(f.Bytes), f.Steps, f.Site, f.Detail)
			}
			for i, s := range r.Pinners {
				if i < 2 {
					t.Logf("   %x %s stuck %s live %s", s.Address, units.Size(s.Size), units.Size(s.Stuck), units.Size(s.Live))
					for j, b := range s.Blocks {
						if j < 2 {
							t.Logf("      %s %d %s", units.Size(b.Bytes), b.Count, b.Site)
						}
					}
				}
			}
			for i, h := range r.ByKind {
				if i < 6 {
					t.Logf("   %s %s %s", units.Size(h.Bytes), h.Category, h.Confidence)
				}
			}
			t.Log(strings.Join(r.Notes, "\n     "))
		}
	}
}

func size(p *uint64) string {
	if p == nil {
		return "-"
	}
	return units.Size(*p)
}
