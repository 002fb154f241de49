package ledger_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
)

// traced is a run of which every range of device memory is known.
type traced struct {
	plancompare.Case
	segments []segment
	external []uint64 // bytes, from the first segment on
}

type segment struct{ size, addr uint64 }

func tracedRuns(t *testing.T) []traced {
	t.Helper()
	type row struct {
		plancompare.Case
		Ranges [][3]json.RawMessage `json:"ranges"`
	}
	var out []traced
	for _, row := range jsonl.Must[row](t, "../../../testdata/plan/traced.jsonl.gz") {
		run := traced{Case: row.Case}
		if run.Name == "plain" {
			continue // no model
		}
		for _, r := range row.Ranges {
			size, _ := strconv.ParseUint(string(r[1]), 10, 64)
			text, _ := strconv.Unquote(string(r[2]))
			addr, err := strconv.ParseUint(text, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			switch what := string(r[0]); {
			case what == `"segment"`:
				run.segments = append(run.segments, segment{size, addr})
			case what == `"outside"` && run.segments != nil:
				run.external = append(run.external, size)
			}
		}
		out = append(out, run)
	}
	if len(out) != 13 {
		t.Fatalf("%d runs", len(out))
	}
	return out
}

// segments runs a ledger and returns the segments in the order in which they
// were taken.
func segments(t *testing.T, l *ledger.Ledger, started bool, others ledger.Externals) []segment {
	t.Helper()
	var out []segment
	dev := sim.New(sim.Config{Endless: true, Started: started})
	a := alloc.New(dev, alloc.WithObserver(func(e alloc.Event) {
		if e.Action == alloc.ActionSegmentAlloc {
			out = append(out, segment{e.Size, e.Addr})
		}
	}))
	addrs := make([]uint64, len(l.Tensors))
	for _, e := range l.Events {
		if e < 0 {
			if err := a.Free(addrs[^e]); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := others.Before(e, dev); err != nil {
			t.Fatal(err)
		}
		var err error
		if addrs[e], err = a.Malloc(uint64(l.Tensors[e].Bytes), uint64(l.Tensors[e].Stream)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// ordered counts the pairs of segments that lie in the traced order.
func ordered(got, want []segment) (right, pairs int) {
	n := min(len(got), len(want))
	for i := range n {
		for j := range i {
			pairs++
			if (got[i].addr < got[j].addr) == (want[i].addr < want[j].addr) {
				right++
			}
		}
	}
	return right, pairs
}

// What the traced runs took beside the allocator is predicted, and with it the
// segments: the same ones in the same order of time, and nearly all of them in
// the same order of addresses.
func TestExternalTraced(t *testing.T) {
	type sum struct{ whole, right, pairs int }
	var bare, with sum
	add := func(s *sum, got, want []segment) {
		r, p := ordered(got, want)
		s.right, s.pairs = s.right+r, s.pairs+p
		if slices.EqualFunc(got, want, func(a, b segment) bool { return a.size == b.size }) {
			s.whole++
		}
	}
	predicted, missing, wrong := 0, 0, 0
	for _, run := range tracedRuns(t) {
		j, err := run.Job()
		if err != nil {
			t.Fatal(err)
		}
		planned, err := hf.Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		others := planned.Ledger.External()
		add(&bare, segments(t, planned.Ledger, false, nil), run.segments)
		got := segments(t, planned.Ledger, true, others)
		add(&with, got, run.segments)

		count := map[uint64]int{}
		for _, bytes := range run.external {
			count[bytes]++
		}
		for _, x := range others {
			if x.Host {
				continue
			}
			if count[x.Bytes]--; count[x.Bytes] >= 0 {
				predicted++
			} else {
				wrong++
			}
		}
		for _, n := range count {
			missing += max(n, 0)
		}
		right, pairs := ordered(got, run.segments)
		t.Logf("%-16s %3d segments, %d of %d pairs in order", run.Name, len(run.segments), right, pairs)
	}
	t.Logf("bare: %d of 13 runs take the same segments, %.2f %% of pairs in order", bare.whole, 100*float64(bare.right)/float64(bare.pairs))
	t.Logf("with: %d of 13 runs take the same segments, %.2f %% of pairs in order", with.whole, 100*float64(with.right)/float64(with.pairs))
	t.Logf("%d takings predicted, %d missing, %d wrong", predicted, missing, wrong)
	if with.whole != 13 || with.right*100 < with.pairs*98 {
		t.Errorf("%+v", with)
	}
	if bare.whole >= with.whole || bare.right >= with.right {
		t.Errorf("a bare device does as well: %+v", bare)
	}
	if missing > 8 || wrong > 1 {
		t.Errorf("%d takings predicted, %d missing, %d wrong", predicted, missing, wrong)
	}
}
