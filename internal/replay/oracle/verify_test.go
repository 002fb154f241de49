package oracle

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

func recordings(t testing.TB, dir string, want int) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", dir, "*.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != want {
		t.Fatalf("%d recordings in %s, want %d", len(files), dir, want)
	}
	return files
}

func load(t testing.TB, file string) *Recording {
	t.Helper()
	rec, err := Load(context.Background(), File(file))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// The engine does exactly what PyTorch did in every recording.
func TestRecordingsAreIdentical(t *testing.T) {
	files := append(recordings(t, "oracle", 54), recordings(t, "verify/recordings", 68)...)
	for _, file := range short.Files(t, files, 12) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec := load(t, file)
			r, err := Verify(t.Context(), rec)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Identical {
				t.Fatalf("%d of %d events identical; %v", r.IdenticalEvents, r.Events, r.First)
			}
			if r.First != nil || r.IdenticalEvents != len(rec.Trace) || r.Events != len(rec.Trace) || r.Events == 0 {
				t.Errorf("inconsistent result %+v", r)
			}
		})
	}
}

// Where PyTorch itself fails the result says so and claims nothing.
func TestPyTorchFails(t *testing.T) {
	for _, file := range recordings(t, "verify/pytorch-fails", 3) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			r, err := Verify(t.Context(), load(t, file))
			if err != nil {
				t.Fatal(err)
			}
			if r.Identical || r.First == nil || (r.First.Kind != replay.DiffUndefined && r.First.Kind != replay.DiffException) {
				t.Fatalf("identical %v, first difference %v", r.Identical, r.First)
			}
			t.Logf("%d of %d events identical; %v", r.IdenticalEvents, r.Events, r.First)
		})
	}
}
