package explain

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// What is said of real runs in which nothing failed is what whatif and the final
// segments of the file say.
func TestHealthOfRealRuns(t *testing.T) {
	short.Skip(t)
	var files []string
	for _, dir := range []string{"snapshots", "variety"} {
		all, err := filepath.Glob("../../../testdata/" + dir + "/*.pickle.gz")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			files = append(files, dir+"/"+strings.TrimSuffix(filepath.Base(f), ".pickle.gz"))
		}
	}
	healthy, smaller := 0, 0
	for _, file := range files {
		c := checked(t, file)
		r, err := FromSnapshot(t.Context(), Input{Run: c})
		if err != nil {
			t.Fatal(file, err)
		}
		h := r.Health
		if h == nil {
			continue
		}
		healthy++
		rules, releasable, private := alloc.RulesOf(c.Program.Settings, c.Program.Version), uint64(0), false
		for _, s := range c.Program.Trace.Segments {
			private = private || s.Pool != (alloc.PoolID{}) // their segments stay
			for i := range s.Blocks {
				releasable += rules.Releasable(&alloc.Segment{Address: s.Address, TotalSize: s.TotalSize, Expandable: s.Expandable, Large: s.Type == "large"}, &alloc.Block{
					Address: s.Blocks[i].Address, Size: s.Blocks[i].Size, State: s.Blocks[i].State,
				})
			}
		}
		if r.SelfCheck.Complete && !private && *h.Releasable != releasable {
			t.Errorf("%s: %d releasable, by its segments %d", file, *h.Releasable, releasable)
		}
		q := whatif.Question{Limit: whatif.LimitOf(c)}
		for _, s := range h.Smaller {
			parsed, err := whatif.ParseSetting(s.Settings)
			if err != nil {
				t.Fatal(file, err)
			}
			q.Settings = append(q.Settings, parsed)
		}
		a, err := whatif.Ask(t.Context(), c, q)
		if err != nil {
			t.Fatal(file, err)
		}
		if own := a.Results[0]; own.PeakReserved != h.PeakReserved || own.DriverMS != *h.DriverMS || own.Retries != h.Retries {
			t.Errorf("%s: %d reserved, %v ms, %d retries, by whatif %+v", file, h.PeakReserved, *h.DriverMS, h.Retries, own)
		}
		for i, s := range h.Smaller {
			smaller++
			if w := a.Results[i+1]; w.Fails || w.PeakReserved != s.PeakReserved || w.DriverMS != s.DriverMS || s.Saved != h.PeakReserved-s.PeakReserved {
				t.Errorf("%s: %+v, by whatif %+v", file, s, w)
			}
		}
		if !slices.IsSortedFunc(h.Smaller, func(a, b Smaller) int { return int(int64(a.PeakReserved) - int64(b.PeakReserved)) }) {
			t.Errorf("%s: %+v", file, h.Smaller)
		}
	}
	if healthy < 15 || smaller < 8 {
		t.Errorf("%d healthy runs, %d smaller settings", healthy, smaller)
	}
}

// All calls of empty_cache of this run lie in steps: without them it is the run
// that whatif replays.
func TestEmptyCacheOfARealRun(t *testing.T) {
	c := checked(t, "variety/graphs")
	r, err := FromSnapshot(t.Context(), Input{Run: c})
	if err != nil {
		t.Fatal(err)
	}
	none, err := whatif.ParseEmptyCache("none")
	if err != nil {
		t.Fatal(err)
	}
	a, err := whatif.Ask(t.Context(), c, whatif.Question{EmptyCache: none})
	if err != nil {
		t.Fatal(err)
	}
	if e, w := r.Health.EmptyCache, a.Results[1]; e == nil || e.Calls != 3 || e.PeakReservedWithout != w.PeakReserved || e.DriverMSWithout != w.DriverMS {
		t.Errorf("%+v, by whatif %+v", e, w)
	}
}
