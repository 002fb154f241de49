package replay_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Under its own settings and limit a program does on the simulated device what
// its check did on the recorded one.
func TestOwnSettings(t *testing.T) {
	for _, file := range short.Some(realFiles(t), 5) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			p := checked(t, file)
			if p.Start.Kind == start.Unknown || p.Trace.Events.Len() == 0 {
				t.Skip("nothing to run")
			}
			if p.Check.Limit.Max == 0 && p.Check.Stats["num_ooms"] > 0 {
				t.Skip("the device refused a request: what it had is not known")
			}
			o, err := p.Run(context.Background(), replay.Conditions{Settings: p.Settings, Limit: p.Check.Limit.Max, SkipOOM: true})
			if err != nil {
				t.Fatal(err)
			}
			want, got := p.Check.Stats, o.Stats.Map()
			if p.Waits() {
				forgetOrder(want, got)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("statistics differ (-check +run):\n%s", d)
			}
		})
	}
}

// recipe returns a public example of two settings that are harmless alone and
// not together (pytorch pull request 193400): a 64 MiB block, then cycles in
// which two transient blocks come and go and a small one stays.
func recipe(cycles int) *trace.Trace {
	const mib = 1 << 20
	t := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
	addr := uint64(0)
	alloc1 := func(size uint64) trace.Event {
		addr += 1 << 30
		e := trace.Event{Action: alloc.ActionAlloc, Addr: addr, Size: size, Time: trace.NoTime}
		t.Events.Append(e)
		return e
	}
	free := func(e trace.Event) {
		e.Action = alloc.ActionFreeRequested
		t.Events.Append(e)
		e.Action = alloc.ActionFreeCompleted
		t.Events.Append(e)
	}
	alloc1(64 * mib)
	for range cycles {
		a, b := alloc1(91*mib), alloc1(91*mib/2)
		alloc1(2 * mib)
		free(a)
		free(b)
	}
	return t
}

func TestRecipe(t *testing.T) {
	reserved := func(conf string, cycles int) uint64 {
		t.Helper()
		s, err := settings.Parse(conf)
		if err != nil {
			t.Fatal(err)
		}
		o, err := verify.ReadProgram(recipe(cycles)).Run(context.Background(), replay.Conditions{Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		if o.Fails || uint64(o.Stats.ReservedBytes.All.Current) != o.Reserved.Bytes {
			t.Errorf("%s: fails %v, reserved %d at the end, %d at the peak", conf, o.Fails, o.Stats.ReservedBytes.All.Current, o.Reserved.Bytes)
		}
		return o.Reserved.Bytes >> 20
	}
	for i, want := range []uint64{220, 2980, 5760, 8520, 11300, 14060} {
		if got := reserved("max_split_size_mb:128,expandable_segments:True", 20*i+1); got != want {
			t.Errorf("cycle %d: %d MiB reserved, published %d", 20*i, got, want)
		}
	}
	for _, conf := range []string{"max_split_size_mb:128", "expandable_segments:True"} {
		if got := reserved(conf, 101); got >= 500 {
			t.Errorf("%s alone: %d MiB reserved, published below 500", conf, got)
		}
	}
}

func TestCurve(t *testing.T) {
	p := checked(t, "snapshots/gpt2_varlen-default")
	o, err := p.Run(context.Background(), replay.Conditions{Settings: p.Settings, Points: 100})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Curve) != 100 {
		t.Fatalf("%d points", len(o.Curve))
	}
	var peak replay.Point
	last := -1
	for _, c := range o.Curve {
		if c.Event <= last || c.Time == trace.NoTime {
			t.Errorf("event %d after %d, time %d", c.Event, last, c.Time)
		}
		last = c.Event
		if c.Requested > c.Allocated || c.Allocated > c.Active || c.Active > c.Reserved || c.LargestFree > c.ReservedNow-c.AllocatedNow {
			t.Errorf("impossible: %+v", c)
		}
		peak.Reserved = max(peak.Reserved, c.Reserved)
		peak.Allocated = max(peak.Allocated, c.Allocated)
		peak.Active = max(peak.Active, c.Active)
		peak.Requested = max(peak.Requested, c.Requested)
	}
	want := replay.Point{Reserved: o.Reserved.Bytes, Allocated: o.Allocated.Bytes, Active: o.Active.Bytes, Requested: o.Requested.Bytes}
	if peak != want {
		t.Errorf("the curve's peaks are %+v, the run's %+v", peak, want)
	}
	end := o.Curve[99]
	if got := uint64(o.Stats.AllocatedBytes.All.Current); end.AllocatedNow != got || end.Fragmentation() <= 0 || end.Fragmentation() >= 1 {
		t.Errorf("at the end %+v, %d allocated", end, got)
	}
	plain, err := p.Run(context.Background(), replay.Conditions{Settings: p.Settings})
	if err != nil {
		t.Fatal(err)
	}
	if plain.Reserved != o.Reserved || plain.Active != o.Active || plain.Allocated != o.Allocated || plain.Requested != o.Requested {
		t.Errorf("the peaks depend on the curve: %+v and %+v", plain, o)
	}
}

// A failing request ends the run, or is left out together with its free.
func TestOnOOM(t *testing.T) {
	p := checked(t, "snapshots/unet_multires-default")
	c := replay.Conditions{Settings: p.Settings, Limit: 10213 << 20, Points: 20}
	die, err := p.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !die.Fails || die.OOMs != 1 || die.Calls >= p.Len() || die.First.RecordedToo {
		t.Errorf("fails %v after %d of %d calls with %d failures", die.Fails, die.Calls, p.Len(), die.OOMs)
	}
	if e := p.Trace.Events.At(die.First.Event); e.Action != alloc.ActionAlloc || e.Size != die.First.OutOfMemoryError.Requested {
		t.Errorf("failed at %+v with %v", e, die.First.OutOfMemoryError)
	}
	if last := die.Curve[len(die.Curve)-1]; last.Event != die.First.Event || len(die.Curve) >= 20 {
		t.Errorf("the curve has %d points and ends at event %d, the run at %d", len(die.Curve), last.Event, die.First.Event)
	}
	c.SkipOOM = true
	skip, err := p.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !skip.Fails || skip.Calls != p.Len() || skip.First.Event != die.First.Event || len(skip.Curve) != 20 {
		t.Errorf("skipping: fails %v after %d of %d calls", skip.Fails, skip.Calls, p.Len())
	}
}

func TestDeviceMemory(t *testing.T) {
	p := checked(t, "snapshots/gpt2_fixed-default")
	for _, memory := range []uint64{7700 << 20, 7708 << 20} {
		o, err := p.Run(context.Background(), replay.Conditions{Settings: p.Settings, DeviceMemory: memory})
		if err != nil {
			t.Fatal(err)
		}
		if fits := memory >= 7708<<20; o.Fails == fits && o.Retries == 0 {
			t.Errorf("with %d MiB: fails %v, %d retries", memory>>20, o.Fails, o.Retries)
		}
	}
}

func TestNotRunnable(t *testing.T) {
	p := verify.ReadProgram(recipe(1))
	for _, conf := range []string{"backend:cudaMallocAsync", "per_process_memory_fraction:0.5"} {
		s, err := settings.Parse(conf)
		if err != nil {
			t.Fatal(err)
		}
		var refused *replay.ConditionError
		if _, err := p.Run(context.Background(), replay.Conditions{Settings: s}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", conf, err)
		}
	}
	half := settings.Default()
	half.PerProcessMemoryFraction = 0.5
	o, err := p.Run(context.Background(), replay.Conditions{Settings: half, DeviceMemory: 300 << 20})
	if err != nil || !o.Fails || o.First.Limit != 150<<20 {
		t.Errorf("half of 300 MiB: %+v, %v", o, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Run(ctx, replay.Conditions{Settings: settings.Default()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// forgetOrder drops what depends on the order in which blocks merge that become
// free together, which only the recording knows: the sums of rises and falls.
func forgetOrder(stats ...map[string]int64) {
	for _, m := range stats {
		for key := range m {
			if strings.HasPrefix(key, "inactive_split") && (strings.HasSuffix(key, ".allocated") || strings.HasSuffix(key, ".freed")) {
				delete(m, key)
			}
		}
	}
}

func realFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../testdata/*/*.pickle.gz")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for i := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(files[i], "../../testdata/"), ".pickle.gz")
	}
	return files
}

// Under a limit below what was reserved at the start of a mid-run recording the
// cache goes first, and nothing of that shows in the figures of the run.
func TestStartReleased(t *testing.T) {
	for _, file := range []string{"variety/ring", "variety/midrun"} {
		p := checked(t, file)
		start, held := p.Start.Reserved(), uint64(0)
		cache, err := p.StartCache()
		if err != nil || cache == 0 || cache >= start {
			t.Fatalf("%s: %d of %d cached at the start, %v", file, cache, start, err)
		}
		for _, g := range p.Start.Segments {
			for _, b := range g.Blocks {
				held += b.RequestedSize
			}
		}
		for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:64"} {
			s, err := settings.Parse(conf)
			if err != nil {
				t.Fatal(err)
			}
			for _, limit := range []uint64{0, start, start - 1, start - start/4, start - cache, held} {
				o, err := p.Run(context.Background(), replay.Conditions{Settings: s, Limit: limit, Points: 50})
				if err != nil {
					t.Fatal(err)
				}
				if want := limit != 0 && limit < start; (o.StartReleased == cache) != want || (o.StartReleased == 0) == want {
					t.Errorf("%s, %q under %d of %d: %d released at the start, %d are cached there", file, conf, limit, start, o.StartReleased, cache)
				}
				var highest uint64
				for _, c := range o.Curve {
					highest = max(highest, c.Reserved)
				}
				if highest != o.Reserved.Bytes {
					t.Errorf("%s, %q under %d: the peak is %d, that of the curve %d", file, conf, limit, o.Reserved.Bytes, highest)
				}
				if grown := o.Reserved.Bytes - min(o.Reserved.Bytes, start-o.StartReleased); grown > 0 && o.DeviceAllocs == 0 {
					t.Errorf("%s, %q under %d: %d grown with %d calls", file, conf, limit, grown, o.DeviceAllocs)
				}
				if o.Retries == 0 && s.MaxSplitSize == settings.None && (o.DeviceFrees > 0 || o.Unmaps > 0 || o.DeviceAllocs == 0 && o.DriverTime > 0) {
					t.Errorf("%s, %q under %d: %d frees, %d unmaps and %v without a flush", file, conf, limit, o.DeviceFrees, o.Unmaps, o.DriverTime)
				}
			}
		}
	}
}

// The smallest limit of a mid-run recording is one: with it the run passes and
// stays below it, and 2 MiB less fail.
func TestSmallestLimitMidRun(t *testing.T) {
	for _, file := range []string{"variety/ring", "variety/midrun"} {
		p := checked(t, file)
		limit, err := p.SmallestLimit(context.Background(), p.Settings, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		if file == "variety/ring" && limit >= p.Start.Reserved() {
			t.Errorf("%s: %d, what is cached at the start is not needed", file, limit)
		}
		for _, tt := range []struct {
			limit uint64
			fails bool
		}{{limit, false}, {limit - alloc.SmallSegment, true}} {
			o, err := p.Run(context.Background(), replay.Conditions{Settings: p.Settings, Limit: tt.limit})
			if err != nil {
				t.Fatal(err)
			}
			if o.Fails != tt.fails || !o.Fails && o.Reserved.Bytes > tt.limit {
				t.Errorf("%s under %d: fails %v with %d reserved", file, tt.limit, o.Fails, o.Reserved.Bytes)
			}
		}
	}
}
