package oracle

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// A damaged or hostile recording must end in a difference, never in a crash.
func TestMutatedRecordings(t *testing.T) {
	files := []string{
		"../../../testdata/oracle/lessons-expand-1.json.gz",
		"../../../testdata/verify/recordings/capture-26-2.json.gz",
		"../../../testdata/verify/recordings/pending-24-2.json.gz",
		"../../../testdata/verify/recordings/pools-18-2.json.gz",
		"../../../testdata/verify/recordings/toggle-10-1.json.gz",
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			original := load(t, file)
			for seed := range uint64(short.Times(60)) {
				rng := rand.New(rand.NewPCG(seed, 1))
				rec := *original
				rec.Ops = slices.Clone(rec.Ops)
				rec.Trace = slices.Clone(rec.Trace)
				rec.Checkpoints = nil
				for range 1 + rng.IntN(5) {
					mutate(rng, &rec)
				}
				if rec.check() == nil {
					verified(t, &rec)
				}
			}
		})
	}
}

// mutate changes one thing at random.
func mutate(rng *rand.Rand, rec *Recording) {
	number := func(old uint64) uint64 {
		switch rng.IntN(6) {
		case 0:
			return 0
		case 1:
			return 1<<64 - 1 - rng.Uint64N(1<<21)
		case 2:
			return 1 << rng.IntN(64)
		case 3:
			return old - 512
		case 4:
			return rec.Trace[rng.IntN(len(rec.Trace))].Addr
		}
		return old + 512
	}
	i, j := rng.IntN(len(rec.Ops)), rng.IntN(len(rec.Trace))
	switch op, e := &rec.Ops[i], &rec.Trace[j]; rng.IntN(10) {
	case 0:
		op.Size = number(op.Size)
	case 1:
		op.Stream = rng.IntN(len(rec.Streams))
	case 2:
		*op = rec.Ops[rng.IntN(len(rec.Ops))]
	case 3:
		op.ID = uint64(rng.IntN(len(rec.Ops)))
	case 4:
		e.Addr = number(e.Addr)
	case 5:
		e.Size = number(e.Size)
	case 6:
		e.Stream = number(e.Stream)
	case 7:
		rec.Trace = slices.Delete(rec.Trace, j, j+1)
	case 8:
		rec.Trace = slices.Insert(rec.Trace, j, rec.Trace[rng.IntN(len(rec.Trace))])
	case 9:
		rec.TotalMemory, rec.Fraction = number(rec.TotalMemory), rng.Float64()
	}
}
