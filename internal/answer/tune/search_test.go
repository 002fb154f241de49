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

func program(t testing.TB, file string) *replay.Program {
	t.Helper()
	return checked(t, file).Program
}

func checked(t testing.TB, file string) *run.Checked {
	t.Helper()
	f, err := snapshot.Open(context.Background(), "../../../testdata/"+file+".pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := run.New(f.Traces[0], nil).Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// quick returns a search that ends by itself in well under a second.
func quick(t *testing.T, p *replay.Program, o Options) *Result {
	t.Helper()
	r, err := Search(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Finished {
		t.Error("the search did not come to its end")
	}
	return r
}

// What a result says of a setting can be checked by single runs.
func TestResultIsTrue(t *testing.T) {
	short.Skip(t)
	p := program(t, "snapshots/leak_graph-tight-default")
	const limit = 1236 << 20
	r := quick(t, p, Options{Limit: limit})
	run := func(c *Candidate, limit uint64) *replay.Outcome {
		t.Helper()
		o, err := p.Run(context.Background(), replay.Conditions{Settings: c.Settings, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if len(r.Front) < 2 || r.Evaluated < 300 || !r.FrontComplete {
		t.Errorf("%d settings evaluated, %d on the front", r.Evaluated, len(r.Front))
	}
	for _, c := range append([]*Candidate{r.Current, r.Recommended}, r.Front...) {
		if o := run(c, 0); o.Fails || o.Reserved.Bytes != c.PeakReserved || o.DriverTime != c.DriverTime {
			t.Errorf("%s: the run without a limit has %d reserved and %v", c.Settings, o.Reserved.Bytes, o.DriverTime)
		}
		if run(c, c.SmallestLimit).Fails || !run(c, c.SmallestLimit-step).Fails {
			t.Errorf("%s: %d is not the smallest limit", c.Settings, c.SmallestLimit)
		}
		if o := run(c, c.Need); o.Fails || o.Reserved.Bytes > c.Need || c.SmallestLimit > c.Need || c.Need < r.LowerBound {
			t.Errorf("%s: needs %d, with %d reserved and a smallest limit of %d", c.Settings, c.Need, o.Reserved.Bytes, c.SmallestLimit)
		}
		if o := run(c, limit); o.Fails != c.Limited.Fails || o.Reserved != c.Limited.Reserved {
			t.Errorf("%s: under the limit %v", c.Settings, o.Fails)
		}
	}
	if !r.Current.Limited.Fails || r.Recommended.Limited.Fails || r.Recommended == r.Current {
		t.Errorf("recommended: %s, %s", r.Recommended.Settings, r.Reason)
	}
	for i, x := range r.Front {
		for j, y := range r.Front {
			if i != j && x.Need <= y.Need && x.PeakReserved <= y.PeakReserved && x.DriverTime <= y.DriverTime {
				t.Errorf("%s beats %s", x.Settings, y.Settings)
			}
		}
	}
	// Exhaustive over one value: nothing of it is better than what was found.
	for _, mb := range splits[1:] {
		s := settings.Default()
		s.MaxSplitSize = mb * mib
		need, err := p.SmallestLimit(context.Background(), s, r.LowerBound, 0)
		if err != nil {
			t.Fatal(err)
		}
		if need < r.Front[0].Need {
			t.Errorf("max_split_size_mb:%d needs %d, the best found %d", mb, need, r.Front[0].Need)
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
			p := program(t, "snapshots/"+name+"-default")
			r, err := Search(context.Background(), p, Options{Limit: limit << 20, Budget: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Current.Limited.Fails {
				t.Error("the recorded settings pass")
			}
			if r.Recommended.Limited.Fails || r.Recommended.SmallestLimit > limit<<20 {
				t.Errorf("recommended %q needs %d: %s", r.Recommended.Settings, r.Recommended.SmallestLimit>>20, r.Reason)
			}
		})
	}
}

// The answer depends on the recording alone.
func TestDeterministic(t *testing.T) {
	p := program(t, "snapshots/ckpt_spike-tight-default")
	one := quick(t, p, Options{Workers: 1})
	for _, workers := range short.Some([]int{2, 5}, 1) {
		r := quick(t, p, Options{Workers: workers})
		if d := cmp.Diff(one, r, cmpopts.IgnoreFields(Result{}, "Elapsed"), cmp.AllowUnexported(Candidate{}),
			cmpopts.IgnoreTypes(&replay.Outcome{})); d != "" {
			t.Errorf("with %d workers (-1 worker):\n%s", workers, d)
		}
	}
}

// Settings that cannot be beaten are said to be so.
func TestNothingBeatsTheBest(t *testing.T) {
	short.Skip(t)
	p := program(t, "snapshots/ckpt_spike-default")
	best := *p
	best.Settings.ExpandableSegments = true
	r := quick(t, &best, Options{})
	if r.Recommended != r.Current {
		t.Errorf("recommended %q instead of %q: %s", r.Recommended.Settings, r.Current.Settings, r.Reason)
	}
}

func TestDeviceTooSmall(t *testing.T) {
	p := program(t, "snapshots/ckpt_spike-tight-default")
	r := quick(t, p, Options{DeviceMemory: 1 << 30})
	if r.Recommended != r.Current || r.Recommended.Need != 0 || len(r.Front) != 0 {
		t.Errorf("on 1 GiB: %+v, %s", r.Recommended, r.Reason)
	}
}

func TestCancel(t *testing.T) {
	short.Skip(t)
	p := program(t, "snapshots/gpt2_varlen-default")
	ctx, cancel := context.WithCancel(context.Background())
	r, err := Search(ctx, p, Options{Progress: func(n int) {
		if n == 40 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || r == nil || r.Finished || r.Evaluated < 40 || r.Recommended.SmallestLimit == 0 {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
	r, err = Search(context.Background(), p, Options{Budget: 50 * time.Millisecond})
	if err != nil || r.Finished || r.Recommended == nil {
		t.Errorf("a small budget: %+v, %v", r, err)
	}
	if _, err := Search(ctx, p, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

// No candidate is refused by PyTorch, or tried twice.
func TestSpace(t *testing.T) {
	s := newSpace(program(t, "snapshots/gpt2_varlen-default"), true)
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
