package policies

import (
	"testing"

	"github.com/ashlar-mem/ashlar/internal/policy"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func checked(t testing.TB, path string) *run.Checked {
	t.Helper()
	f, err := snapshot.Open(t.Context(), "../../../testdata/"+path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.New(f.Traces[0], nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// BenchmarkCalls makes the calls of a real run on one core.
func BenchmarkCalls(b *testing.B) {
	r := checked(b, "snapshots/serve_generate-default.pickle.gz")
	c := newCourse(r.Program, nil)
	for _, name := range policy.Names {
		b.Run(name, func(b *testing.B) {
			s, err := policy.Parse(name)
			if err != nil {
				b.Fatal(err)
			}
			var o *outcome
			for b.Loop() {
				if o, err = c.drive(b.Context(), s, conditions{only: -1, region: func(policy.Place) uint64 { return 8 << 30 }}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(o.ops)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mcalls/s")
			b.ReportMetric(float64(o.stats.Peak.Reserved)/(1<<20), "MiB")
		})
	}
}
