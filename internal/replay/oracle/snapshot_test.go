package oracle

import (
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// TestRecordingsAsSnapshots replays recordings as if only a snapshot had been
// kept. All must come out identical but those that use private pools at random
// or change settings at run time, of which a snapshot tells too little.
func TestRecordingsAsSnapshots(t *testing.T) {
	var files []string
	for _, pattern := range []string{"oracle/*", "verify/recordings/p[el]*", "verify/recordings/*oompool*"} {
		more, err := filepath.Glob("../../../testdata/" + pattern + ".json.gz")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	if len(files) != 54+16+18 {
		t.Fatalf("%d recordings", len(files))
	}
	for _, file := range short.Files(t, files, 8) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec, err := Load(t.Context(), File(file))
			if err != nil {
				t.Fatal(err)
			}
			tr, err := rec.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			v, err := verify.Run(t.Context(), tr, verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r := v.Result; !r.Identical {
				t.Errorf("%d of %d events identical: %v", r.IdenticalEvents, r.Events, r.First)
			}
		})
	}
}
