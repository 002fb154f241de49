package monitor_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/monitor"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

const mib = 1 << 20

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func malloc(t *testing.T, a *alloc.Allocator, size uint64) uint64 {
	t.Helper()
	addr, err := a.Malloc(size, 0)
	check(t, err)
	return addr
}

// fill reserves 100 MiB in segments of 10 MiB.
func fill(t *testing.T, a *alloc.Allocator) (blocks []uint64) {
	for range 10 {
		blocks = append(blocks, malloc(t, a, 10*mib))
	}
	return blocks
}

func start(t *testing.T, a *alloc.Allocator, o monitor.Options) *monitor.Monitor {
	t.Helper()
	m, err := monitor.New(a, o)
	check(t, err)
	return m
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		conf                          string
		cached, pinned, inactiveSplit float64
	}{
		// Of 80 MiB: one segment free (20), one with 5 of its 20 MiB in use, 40 in use.
		{"", 35.0 / 80, 15.0 / 80, 15.0 / 80},
		// The same requests are 65 MiB in granules of 20: 80. The hole of 20 is
		// between two granules; what is free behind is less than one.
		{"expandable_segments:True", 35.0 / 80, 35.0 / 80, 0},
	} {
		t.Run(c.conf, func(t *testing.T) {
			set, err := settings.Parse(c.conf)
			check(t, err)
			a := alloc.New(sim.New(sim.Config{}), alloc.WithSettings(set))
			if s := monitor.NewSample(a); s.Share(monitor.Cached) != 0 {
				t.Errorf("a share of nothing: %v", s)
			}
			malloc(t, a, 5*mib)
			hole := malloc(t, a, 20*mib)
			malloc(t, a, 40*mib)
			check(t, a.Free(hole))
			s := monitor.NewSample(a)
			if s.ReservedBytes != 80*mib || s.AllocatedBytes != 45*mib || s.CachedBytes != s.ReleasableBytes+s.PinnedBytes {
				t.Errorf("sample %+v", s)
			}
			for m, want := range map[monitor.Measure]float64{monitor.Cached: c.cached, monitor.Pinned: c.pinned, monitor.InactiveSplit: c.inactiveSplit} {
				if got := s.Share(m); math.Abs(got-want) > 1e-9 {
					t.Errorf("%v: share %v, want %v", m, got, want)
				}
			}
			// Pinned is what a release leaves behind.
			check(t, a.EmptyCache())
			if after := monitor.NewSample(a); after.CachedBytes != s.PinnedBytes || after.ReleasableBytes != 0 {
				t.Errorf("after a release %+v, before %+v", after, s)
			}
		})
	}
}

func TestHysteresis(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	blocks := fill(t, a)
	type step struct {
		free int // of ten blocks
		want string
	}
	for _, c := range []struct {
		name  string
		o     monitor.Options
		steps []step
	}{
		{"apart", monitor.Options{High: 0.5, Low: 0.3}, []step{
			{0, ""}, {5, ""}, {6, "raised"}, {6, ""}, {4, ""}, {6, ""}, {3, ""}, {2, "ended"}, {5, ""}, {6, "raised"}, {0, "ended"},
		}},
		{"default low", monitor.Options{High: 0.5}, []step{{6, "raised"}, {5, ""}, {4, "ended"}, {0, ""}}},
		{"little memory", monitor.Options{High: 0.5, MinReserved: 100*mib + 1}, []step{{10, ""}, {0, ""}}},
		{"enough memory", monitor.Options{High: 0.5, MinReserved: 100 * mib}, []step{{10, "raised"}, {0, "ended"}}},
		{"the highest", monitor.Options{High: 0.99}, []step{{9, ""}, {10, "raised"}, {0, "ended"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			told := ""
			c.o.Notify = func(r monitor.Report) {
				told = map[bool]string{true: "raised", false: "ended"}[r.Alarm]
				if !r.Changed || r.Raised != r.Alarm || r.Before != nil {
					t.Errorf("told %+v", r)
				}
			}
			m := start(t, a, c.o)
			free := 0
			for i, s := range c.steps {
				for ; free < s.free; free++ {
					check(t, a.Free(blocks[free]))
				}
				for ; free > s.free; free-- {
					blocks[free-1] = malloc(t, a, 10*mib)
				}
				told = ""
				r := m.Check()
				if told != s.want || r.Share != float64(s.free)/10 {
					t.Errorf("step %d: told %q at %v, want %q", i, told, r.Share, s.want)
				}
			}
		})
	}
}

// Run samples once an interval, releases when it may, and ends with its context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := sim.New(sim.Config{})
		a := alloc.New(dev)
		var reports []monitor.Report
		m := start(t, a, monitor.Options{
			Interval: 10 * time.Second, High: 0.5, Release: true, MinRelease: 20 * mib, MinPause: time.Minute,
			Notify: func(r monitor.Report) { reports = append(reports, r) },
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()

		sleep := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		expect := func(doing string, want monitor.Counters, held uint64) {
			t.Helper()
			if got := m.Counters(); got != want || dev.Held() != held {
				t.Errorf("%s: counters %+v with %d held, want %+v with %d", doing, got, dev.Held(), want, held)
			}
		}
		blocks := fill(t, a)
		sleep(9 * time.Second)
		expect("before the first", monitor.Counters{}, 100*mib)
		sleep(2 * time.Second)
		expect("first", monitor.Counters{Samples: 1}, 100*mib)

		for _, b := range blocks[:7] {
			check(t, a.Free(b))
		}
		sleep(10 * time.Second) // the release is followed by a sample
		want := monitor.Counters{Samples: 3, Alarms: 1, Releases: 1, ReleasedBytes: 70 * mib}
		expect("release", want, 30*mib)
		if len(reports) != 1 || reports[0].ReleasedBytes != 70*mib || reports[0].Before.CachedBytes != 70*mib ||
			reports[0].Sample.CachedBytes != 0 || !reports[0].Raised || reports[0].Alarm || reports[0].Changed || reports[0].Err != nil {
			t.Errorf("reports %+v", reports)
		}

		// Again within the pause: the alarm stays on and nothing is released.
		for _, b := range fill(t, a) {
			check(t, a.Free(b))
		}
		sleep(50 * time.Second)
		want.Samples += 5
		want.Alarms++
		expect("pause", want, 130*mib)
		// The pause ends during a capture.
		c, err := a.BeginCapture(alloc.PoolID{}, func(uint64) bool { return false })
		check(t, err)
		sleep(20 * time.Second)
		want.Samples += 2
		want.Postponed = 2
		expect("capture", want, 130*mib)
		check(t, c.End())
		sleep(10 * time.Second)
		want.Samples += 2
		want.Releases++
		want.ReleasedBytes += 100 * mib
		expect("after the capture", want, 30*mib)

		// Less than MinRelease is left alone.
		for _, b := range blocks[7:] {
			check(t, a.Free(b))
		}
		check(t, a.EmptyCache())
		check(t, a.Free(malloc(t, a, 10*mib)))
		sleep(100 * time.Second)
		want.Samples += 10
		want.Alarms++
		expect("little", want, 10*mib)

		cancel(errors.New("enough"))
		if err := <-ended; err == nil || err.Error() != "enough" {
			t.Errorf("Run returned %v", err)
		}
		sleep(time.Hour)
		expect("after the end", want, 10*mib)
	})
}

// A release that the driver refuses is reported and not tried again at once.
func TestReleaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := sim.New(sim.Config{})
		a := alloc.New(dev)
		for _, b := range fill(t, a) {
			check(t, a.Free(b))
		}
		m := start(t, a, monitor.Options{High: 0.5, Release: true})
		broken := errors.New("broken")
		dev.FailKind(sim.Free, 4, broken)
		r := m.Check()
		if !errors.Is(r.Err, broken) || r.ReleasedBytes != 30*mib || !r.Alarm || r.Sample.ReservedBytes != 70*mib {
			t.Errorf("report %+v", r)
		}
		m.Check()
		if c := m.Counters(); c.Failures != 1 || c.Releases != 0 || c.ReleasedBytes != 30*mib {
			t.Errorf("counters %+v", c)
		}
		time.Sleep(30 * time.Second)
		if r := m.Check(); r.Err != nil || r.ReleasedBytes != 70*mib || r.Alarm {
			t.Errorf("report %+v", r)
		}
	})
}

func TestOptions(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	for name, o := range map[string]monitor.Options{
		"High is 0":             {},
		"High is 1, it":         {High: 1},
		"High is 1.5":           {High: 1.5},
		"High is NaN":           {High: math.NaN()},
		"Low is 0.6":            {High: 0.5, Low: 0.6},
		"Low is -1":             {High: 0.5, Low: -1},
		"no measure 9":          {High: 0.5, Measure: 9},
		"cannot be negative":    {High: 0.5, Interval: -1},
		"MinPause cannot be ne": {High: 0.5, MinPause: -1},
	} {
		if _, err := monitor.New(a, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal(monitor.Sample{Time: time.Unix(0, 0).UTC(), ReservedBytes: 1})
	check(t, err)
	const want = `{"time":"1970-01-01T00:00:00Z","reserved_bytes":1,"allocated_bytes":0,"active_bytes":0,"cached_bytes":0,` +
		`"releasable_bytes":0,"pinned_bytes":0,"inactive_split_bytes":0}`
	if string(text) != want {
		t.Errorf("%s", text)
	}
}

// The program allocates while the monitor releases; the race detector looks on.
func TestConcurrent(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{TotalMemory: 1 << 30}))
	m := start(t, a, monitor.Options{Interval: time.Microsecond, High: 0.01, Release: true, MinPause: time.Microsecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	for m.Counters().Releases < 20 {
		for _, b := range fill(t, a) {
			check(t, a.Free(b))
		}
		m.Check()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	check(t, a.CheckInvariants())
}
