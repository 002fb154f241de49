package oracle

import (
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

// counting is a recorded device that counts the segments it is asked for.
type counting struct {
	*recorded.Driver
	segments int64
}

func (d *counting) Malloc(size, stream uint64) (uint64, error) {
	addr, err := d.Driver.Malloc(size, stream)
	if err == nil {
		d.segments++
	}
	return addr, err
}

func TestVerifyOver(t *testing.T) {
	rec, err := Load(t.Context(), File(filepath.Join("..", "..", "..", "testdata", "oracle", "lessons-default-1.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	var dev *counting
	got, err := VerifyOver(t.Context(), rec, func(d *recorded.Driver) driver.Driver {
		dev = &counting{Driver: d}
		return dev
	})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Identical || dev.segments != got.Stats["num_device_alloc"] {
		t.Errorf("identical %v, %d segments asked for of %d", got.Identical, dev.segments, got.Stats["num_device_alloc"])
	}
}

// The same operations can be made on any device.
func TestPerformer(t *testing.T) {
	rec, err := Load(t.Context(), File(filepath.Join("..", "..", "..", "testdata", "oracle", "lessons-default-1.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	a, err := rec.Allocator(sim.New(sim.Config{TotalMemory: rec.TotalMemory}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewPerformer(rec, a, rec.Streams[:1]); err == nil {
		t.Error("too few streams are taken")
	}
	p, err := NewPerformer(rec, a, []uint64{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rec.Ops {
		if _, err := p.Do(i); err != nil {
			t.Fatalf("operation %d: %v", i, err)
		}
	}
	want := rec.Checkpoints[len(rec.Checkpoints)-1].Stats
	if got := a.Stats().Map()["allocation.all.allocated"]; got != want["allocation.all.allocated"] {
		t.Errorf("%d allocations, recorded are %d", got, want["allocation.all.allocated"])
	}
}
