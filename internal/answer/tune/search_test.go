package tune

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func checked(t testing.TB, file string) *run.Checked {
	t.Helper()
	f, err := snapshot.Open(context.Background(), testdata+"/"+file+".pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := run.New(f.Traces[0], nil).Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// quick returns a search that ends by itself.
func quick(t *testing.T, of *run.Checked, o Options) *Result {
	t.Helper()
	r, err := Search(context.Background(), of, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.CutOff {
		t.Error("the search was cut off without a budget")
	}
	return r
}

// under returns a run as if it had been recorded with other settings.
func under(of *run.Checked, s settings.Settings) *run.Checked {
	p := *of.Program
	p.Settings = s
	return &run.Checked{Run: of.Run, Program: &p, History: of.History}
}

// What a result says of a setting can be checked by single runs.
func TestResultIsTrue(t *testing.T) {
	short.Skip(t)
	of := checked(t, "snapshots/leak_graph-tight-default")
	const limit = 1236 << 20
	for _, goal := range Goals {
		r := quick(t, of, Options{Goal: goal, Limit: limit})
		at := func(c *Candidate, limit uint64) *replay.Outcome {
			t.Helper()
			o, err := of.Program.Run(context.Background(), replay.Conditions{Settings: c.Settings, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		for _, c := range append([]*Candidate{r.Current, r.Recommended}, r.Others...) {
			if o := at(c, 0); o.Fails || o.Reserved.Bytes != c.PeakReserved || o.DriverTime != c.DriverTime || c.Warm.Calls > o.DeviceAllocs+o.DeviceFrees {
				t.Errorf("%s: the run without a limit has %d reserved and %v", c.Settings, o.Reserved.Bytes, o.DriverTime)
			}
			if at(c, c.SmallestLimit).Fails || !at(c, c.SmallestLimit-step).Fails {
				t.Errorf("%s: %d is not the smallest limit", c.Settings, c.SmallestLimit)
			}
			if o := at(c, c.Need); o.Fails || o.Reserved.Bytes > c.Need || c.SmallestLimit > c.Need || c.Need < r.LowerBound {
				t.Errorf("%s: needs %d, with %d reserved and a smallest limit of %d", c.Settings, c.Need, o.Reserved.Bytes, c.SmallestLimit)
			}
			if o := at(c, limit); o.Fails != c.Limited.Fails || o.Reserved != c.Limited.Reserved {
				t.Errorf("%s: under the limit %v", c.Settings, o.Fails)
			}
		}
		if !r.Current.Limited.Fails || r.Recommended.Limited.Fails || r.Recommended == r.Current || r.Recommended.Worst == nil {
			t.Errorf("%s: recommended %q", goal, r.Recommended.Settings)
		}
	}
}

// The runs that died although their data fitted are saved.
func TestSavesRuns(t *testing.T) {
	short.Skip(t)
	for name, limit := range map[string]uint64{
		"gpt2_fixed": 7609, "moe_train": 4633, "leak_graph": 1236, "ckpt_spike": 2608, "unet_multires": 10213, "llama_ckpt": 6667,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The whole run without a limit, so that more is proved than up to
			// the failure.
			r := quick(t, checked(t, "snapshots/"+name+"-default"), Options{Limit: limit << 20, Work: 20e6})
			if !r.Current.Limited.Fails {
				t.Error("the recorded settings pass")
			}
			if r.Recommended.Limited.Fails || r.Recommended.SmallestLimit > limit<<20 {
				t.Errorf("recommended %q needs %d", r.Recommended.Settings, r.Recommended.SmallestLimit>>20)
			}
		})
	}
}

// same reports how two results differ.
func same(a, b *Result) string {
	return cmp.Diff(a, b, cmpopts.IgnoreFields(Result{}, "Elapsed"), cmp.AllowUnexported(Candidate{}, figures{}, score{}),
		cmpopts.IgnoreTypes(&replay.Outcome{}))
}

// The answer depends on the recording alone, not on the number of cores.
func TestDeterministic(t *testing.T) {
	of := checked(t, "snapshots/streams_graphs-default")
	for _, goal := range short.Some(Goals, 1) {
		one := quick(t, of, Options{Goal: goal, Workers: 1, Work: 1e5})
		for _, workers := range short.Some([]int{2, 5}, 1) {
			if d := same(one, quick(t, of, Options{Goal: goal, Workers: workers, Work: 1e5})); d != "" {
				t.Errorf("%s with %d workers (-1 worker):\n%s", goal, workers, d)
			}
		}
	}
}

// Settings that cannot be beaten are kept, and so are those that others beat by
// little.
func TestKeeps(t *testing.T) {
	of := checked(t, "snapshots/ckpt_spike-default")
	best := of.Program.Settings
	best.ExpandableSegments = true
	if r := quick(t, under(of, best), Options{}); r.Recommended != r.Current || r.Evaluated != 1 {
		t.Errorf("recommended %q instead of %q, %d tried", r.Recommended.Settings, r.Current.Settings, r.Evaluated)
	}
	// There are no driver calls to save.
	if r := quick(t, of, Options{Goal: FewestCalls}); r.Recommended != r.Current || r.Current.Warm.Calls != 0 {
		t.Errorf("recommended %q", r.Recommended.Settings)
	}
}

// Without a limit nothing is recommended that reserves more than now, or that
// keeps the driver busy for longer than a hundredth of the time.
func TestNeverMore(t *testing.T) {
	short.Skip(t)
	for _, file := range []string{"snapshots/gpt2_fixed-default", "variety/graphs", "variety/split"} {
		of := checked(t, file)
		for _, goal := range []Goal{LeastReserved, FewestCalls} {
			r := quick(t, of, Options{Goal: goal, Work: 3e6})
			if r.Recommended.PeakReserved > r.Current.PeakReserved || r.Span == 0 || r.Recommended.Warm.Time-r.Current.Warm.Time > r.Span/100 {
				t.Errorf("%s, %s: %q reserves %d and takes %v, now %d and %v", file, goal, r.Recommended.Settings,
					r.Recommended.PeakReserved, r.Recommended.Warm.Time, r.Current.PeakReserved, r.Current.Warm.Time)
			}
		}
	}
}

func TestDeviceTooSmall(t *testing.T) {
	of := checked(t, "snapshots/ckpt_spike-tight-default")
	for _, goal := range Goals {
		r := quick(t, of, Options{Goal: goal, DeviceMemory: 1 << 30, Work: 1e5})
		if r.Recommended != r.Current || r.Recommended.Need != 0 {
			t.Errorf("on 1 GiB: %+v", r.Recommended)
		}
	}
}

func TestCancel(t *testing.T) {
	short.Skip(t)
	of := checked(t, "snapshots/gpt2_varlen-default")
	ctx, cancel := context.WithCancel(context.Background())
	r, err := Search(ctx, of, Options{Progress: func(n int) {
		if n == 40 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || r == nil || r.Finished || r.Evaluated < 40 || r.Recommended.SmallestLimit == 0 {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
	r, err = Search(context.Background(), of, Options{Budget: time.Millisecond})
	if err != nil || r.Finished || !r.CutOff || r.Recommended == nil {
		t.Errorf("a small budget: %+v, %v", r, err)
	}
	if r := quick(t, of, Options{Work: 1}); r.Finished || r.Evaluated > 2+batch {
		t.Errorf("little work: %d evaluated, finished %v", r.Evaluated, r.Finished)
	}
	if _, err := Search(ctx, of, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

// No candidate is refused by PyTorch, or tried twice.
func TestSpace(t *testing.T) {
	s := newSpace(checked(t, "snapshots/gpt2_varlen-default").Program, true)
	all := s.fresh(s.grid(splits, divisions, segments))
	if len(all) < 1500 {
		t.Errorf("%d candidates", len(all))
	}
	start := settings.Default()
	start.MaxSplitSize = 128 * mib
	all = append(all, s.fresh(s.neighbours(start))...)
	seen := map[string]bool{}
	for _, c := range all {
		text := c.String()
		if seen[text] {
			t.Errorf("%q twice", text)
		}
		seen[text] = true
		if back, err := settings.Parse(text); err != nil || normal(back) != c {
			t.Errorf("%q: %v", text, err)
		}
	}
	if !slices.ContainsFunc(all, func(c settings.Settings) bool { return c.GarbageCollectionThreshold > 0 }) {
		t.Error("no garbage collection is tried")
	}
}

func TestExport(t *testing.T) {
	list := settings.Default()
	list.RoundupPower2Divisions[3] = 8
	for _, c := range []struct {
		s    settings.Settings
		want string
	}{
		{settings.Default(), "unset PYTORCH_CUDA_ALLOC_CONF"},
		{func() settings.Settings { s := settings.Default(); s.ExpandableSegments = true; return s }(), "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
		{normal(list), `export PYTORCH_CUDA_ALLOC_CONF="roundup_power2_divisions:[1:0,8:8]"`},
	} {
		if got := c.s.Export(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
