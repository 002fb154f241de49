package findings

import (
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// Block by block the categories add up to those of the holders.
func TestCategoryOfEachBlock(t *testing.T) {
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "testdata", "snapshots", "gpt2_varlen-tight-default.pickle.gz"), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.Run(t.Context(), f.Traces[0], verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := analysisOf(f.Traces[0], v)
	event := a.PeakEvent()
	sums := map[Category]uint64{}
	for i := range a.Blocks() {
		if b := a.lives.block(i); b.alive(int32(event)) {
			c, confidence := a.Category(i)
			sums[c] += b.size
			if confidence == "" {
				t.Errorf("block %d is %s, nobody knows how surely", i, c)
			}
		}
	}
	known := map[Category]bool{}
	for _, c := range Categories() {
		known[c] = true
	}
	holders := a.Holders(event).Categories
	for _, h := range holders {
		if sums[h.Category] != h.Bytes || !known[h.Category] {
			t.Errorf("%s: %d bytes block by block, %d held", h.Category, sums[h.Category], h.Bytes)
		}
	}
	if len(holders) != len(sums) || len(sums) < 3 {
		t.Errorf("%d categories block by block, %d held", len(sums), len(holders))
	}
}
