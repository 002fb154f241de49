package tenants

import (
	"errors"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
)

var mixCount = flag.Int("mixes", 12, "how many random mixes of the recorded runs are played")

// alone plays a program as the only tenant of a group, step by step.
func alone(t *testing.T, p *replay.Program, c replay.Conditions) (*replay.Outcome, []alloc.Event) {
	t.Helper()
	g, err := tenant.New(sim.New(sim.Config{}), c.DeviceMemory, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var events []alloc.Event
	c.Observe = func(_ int, e alloc.Event) { e.Time = 0; events = append(events, e) }
	s, err := p.Step(c, func(d *sim.Device, opts ...alloc.Option) (*replay.Hosted, error) {
		own, err := g.Add("alone", tenant.Terms{Driver: d}, opts...)
		if err != nil {
			return nil, err
		}
		return &replay.Hosted{Allocator: own.Allocator(), Malloc: own.Malloc}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for !s.Done() {
		failure, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if failure != nil && !c.SkipOOM {
			break
		}
	}
	return s.Outcome(), events
}

// A tenant that is alone and has no guarantee does what whatif does, event by event.
func TestAloneIsWhatif(t *testing.T) {
	names := []string{"variety/graphs", "variety/ring"}
	if !testing.Short() {
		names = append(names, "variety/midrun", "variety/expand", "variety/split", "snapshots/streams_graphs-tight-default", "snapshots/unet_multires-tight-default")
	}
	failed := 0
	for _, name := range names {
		p := load(t, name).Program
		expandable := settings.Default()
		expandable.ExpandableSegments = true
		peak, err := p.Run(t.Context(), replay.Conditions{Settings: p.Settings, SkipOOM: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, conf := range []settings.Settings{p.Settings, expandable} {
			conf.PerProcessMemoryFraction = 1
			for _, memory := range []uint64{40 << 30, peak.Reserved.Bytes * 9 / 10, peak.Reserved.Bytes / 2} {
				for _, skip := range []bool{false, true} {
					c := replay.Conditions{Settings: conf, DeviceMemory: memory, SkipOOM: skip}
					var want []alloc.Event
					c.Observe = func(_ int, e alloc.Event) { e.Time = 0; want = append(want, e) }
					o, err := p.Run(t.Context(), c)
					if err != nil {
						t.Fatal(err)
					}
					got, events := alone(t, p, c)
					if !slices.Equal(events, want) {
						t.Errorf("%s, %v, %d bytes, skip %v: other events than whatif has", name, conf, memory, skip)
					}
					if o.Fails {
						failed++
					}
					if o.First != nil && o.First.AtStart {
						continue // whatif stops there, before the first call
					}
					for _, x := range []*replay.Outcome{o, got} {
						x.Conditions, x.Calls = replay.Conditions{}, 0
						x.Maps = 0 // with those that the device refused; here the ledger does
						if x.First != nil {
							x.First.Refusal = nil // as above
						}
					}
					if diff := cmp.Diff(o, got); diff != "" {
						t.Errorf("%s, %v, %d bytes, skip %v: whatif (-), alone (+):\n%s", name, conf, memory, skip, diff)
					}
				}
			}
		}
	}
	if failed == 0 {
		t.Error("no run failed")
	}
}

// Whatever runs are put side by side under whatever terms, no request within a
// guarantee fails.
func TestRandomMixes(t *testing.T) {
	short.Skip(t)
	files, err := filepath.Glob("../../../testdata/snapshots/*-default.pickle.gz")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	names := []string{"serve_generate", "ckpt_spike", "leak_graph", "moe_train"}
	if *mixCount > 100 {
		names = nil
		for _, f := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(f), "-default.pickle.gz"))
		}
	}
	loaded := map[string]*run.Checked{}
	needs := map[string]uint64{}
	for _, name := range names {
		loaded[name] = load(t, "snapshots/"+name+"-default")
		needs[name] = need(t, &Run{Checked: loaded[name]})
	}
	r := rand.New(rand.NewPCG(24, 0))
	failures := 0
	for i := range *mixCount {
		q := &Question{Clock: []string{ByEvent, ByTime}[r.IntN(2)], SkipOOM: r.IntN(3) > 0}
		sum := uint64(0)
		for j := range 2 + r.IntN(3) {
			name := names[r.IntN(len(names))]
			m := &Run{Name: string(rune('a' + j)), File: name, Checked: loaded[name], Priority: r.IntN(3), Repeat: 1 + r.IntN(2)}
			m.Guarantee = r.Uint64N(needs[name])
			if r.IntN(4) == 0 {
				m.Ceiling = m.Guarantee + r.Uint64N(needs[name])
			}
			if r.IntN(2) == 0 {
				m.Start = float64(r.IntN(20000))
			}
			q.Limit += m.Guarantee
			sum += needs[name]
			q.Runs = append(q.Runs, m)
		}
		q.Limit += r.Uint64N(sum)
		failures += mixFailures(t, i, q)
	}
	if failures == 0 {
		t.Error("nothing ever failed: the limits are too high to show anything")
	}
	t.Logf("%d mixes, %d requests failed, none of them within a guarantee", *mixCount, failures)
}

// mixFailures plays a mix and returns how many requests failed.
func mixFailures(t *testing.T, i int, q *Question) (failures int) {
	t.Helper()
	if err := errors.Join(q.Check(), q.checkRuns()); err != nil {
		t.Fatal(err)
	}
	s, g, err := q.asTenants(q.Limit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.play(t.Context(), q.Clock); err != nil {
		t.Fatalf("mix %d: %v", i, err)
	}
	held := uint64(0)
	for _, m := range s.members {
		failures += m.failures
		held += m.device.Held()
		if m.guaranteed != 0 {
			t.Errorf("mix %d: %d guaranteed requests of %s failed", i, m.guaranteed, m.File)
		}
	}
	if u := g.Usage(); u.Reserved != held || held > q.Limit {
		t.Errorf("mix %d: the ledger has %d bytes, the devices %d, the limit is %d", i, u.Reserved, held, q.Limit)
	}
	return failures
}
