package verify

import (
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// Where a limit only refuses, a replay under either end of the range that the
// answers leave goes as the recording did: verify.Run may leave it out.
func TestLimitThatOnlyRefusesNeedsNoConfirmation(t *testing.T) {
	short.Skip(t)
	n := 0
	for _, pattern := range []string{"snapshots/*-tight-*", "fresh/*-tight-*", "variety/*"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", pattern+".pickle.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			f, err := snapshot.Open(t.Context(), file, snapshot.Options{})
			if err != nil {
				t.Fatal(err)
			}
			v := newVerifier(f.Traces[0], Options{})
			p, err := v.best(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := v.result(p)
			if !r.Identical || r.Limit.Max == 0 || p.config.limit != 0 || !v.limitOnlyRefuses() {
				continue
			}
			n++
			if err := v.confirm(t.Context(), p, r); err != nil || !r.Identical {
				t.Errorf("%s: under a limit from %d to %d: %v, %v", file, r.Limit.Min, r.Limit.Max, r.First, err)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d recordings show a limit", n)
	}
}
