package main

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/replay/oracle"
	"github.com/ashlar-mem/ashlar/settings"
)

// scattered is a device without memory that gives addresses in no order: each
// segment gets a random one of many places that are far from each other.
type scattered struct {
	driver.Copier // what the recordings do not use
	rng           *rand.Rand
	used          map[uint64]bool
	streams       uint64
	events        driver.Event
	slow          bool  // no event is done before it is waited for
	left          int   // segments it gives before it breaks; 0 is without end
	refusal       error // how it says that it is broken; errBroken if nil
}

const place = 1 << 38

func newScattered(seed uint64) *scattered {
	return &scattered{rng: rand.New(rand.NewPCG(seed, seed)), used: map[uint64]bool{}, streams: 100}
}

var errBroken = errors.New("the device is broken")

func (d *scattered) get() (uint64, error) {
	if d.left > 0 {
		if d.left--; d.left == 0 {
			return 0, cmp.Or(d.refusal, errBroken)
		}
	}
	for {
		if at := (1 + d.rng.Uint64N(1000)) * place; !d.used[at] {
			d.used[at] = true
			return at, nil
		}
	}
}

func (d *scattered) give(addr uint64) error {
	if !d.used[addr] {
		return errors.New("nothing is there to give back")
	}
	delete(d.used, addr)
	return nil
}

func (d *scattered) TotalMemory() uint64                            { return 200 << 30 }
func (d *scattered) MemInfo() (free, total uint64, err error)       { return 200 << 30, 200 << 30, nil }
func (d *scattered) Malloc(size, stream uint64) (uint64, error)     { return d.get() }
func (d *scattered) Free(addr, size uint64) error                   { return d.give(addr) }
func (d *scattered) Reserve(size, stream uint64) (uint64, error)    { return d.get() }
func (d *scattered) Unreserve(addr, size uint64) error              { return d.give(addr) }
func (d *scattered) Map(addr, size, granule uint64) error           { return nil }
func (d *scattered) Unmap(addr, size, granule, stream uint64) error { return nil }

func (d *scattered) RecordEvent(stream, addr uint64) (driver.Event, error) {
	d.events++
	return d.events, nil
}
func (d *scattered) EventDone(ev driver.Event) (bool, error) { return !d.slow, nil }
func (d *scattered) WaitEvent(ev driver.Event) error         { return nil }

func (d *scattered) NewStream() (uint64, error) {
	d.streams-- // later streams have lower handles
	return d.streams, nil
}
func (d *scattered) CloseStream(stream uint64) error { return nil }

func load(t *testing.T, name string) *oracle.Recording {
	t.Helper()
	rec, err := oracle.Load(t.Context(), oracle.File(filepath.Join("..", "..", "testdata", name+".json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// Every workload and every setting, and a few of the recordings with pools,
// captures and frees that take their time.
var recordings = []string{
	"oracle/edges-default-1", "oracle/edges-nonsplit-1", "oracle/lessons-default-1", "oracle/mixed-default-1",
	"oracle/mixed-split64gc6-1", "oracle/mixed-expandgc6-1", "oracle/pressure-split64-1", "oracle/pressure-gc6-1",
	"oracle/pressure-expand-1", "oracle/steps-round4-1", "oracle/steps-roundlist-1", "oracle/streams-default-1", "oracle/streams-expand-1",
	"verify/recordings/pending-5-1", "verify/recordings/capture-8-1", "verify/recordings/pools-1-1",
}

// On a device with other addresses the runs part at ties only, and each tie is
// shown with blocks that the reader can check.
func TestOracleOtherAddresses(t *testing.T) {
	ties, parted, equal := 0, 0, 0
	for i, name := range recordings {
		dev := newScattered(uint64(i))
		dev.slow = i%2 == 1
		c := &checker{dev: dev, both: true}
		r, err := c.recording(t.Context(), load(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !r.OK || !r.Recorded.Identical {
			r.File = name
			var b strings.Builder
			r.explain(&b)
			t.Errorf("%s: %s\n%s", name, r.layout(), b.String())
			continue
		}
		if len(dev.used) != 0 {
			t.Errorf("%s: %d places were not given back", name, len(dev.used))
		}
		ties += r.Ties
		if r.FirstTie != nil {
			checkTie(t, name, r.FirstTie)
		}
		if r.LayoutEqual {
			equal++
			if r.CheckpointsEqual != r.Checkpoints || r.Performed != r.Operations {
				t.Errorf("%s: %d of %d checkpoints, %d of %d operations", name, r.CheckpointsEqual, r.Checkpoints, r.Performed, r.Operations)
			}
		} else {
			parted++
			if r.Parted.Tie == nil && r.FirstTie == nil {
				t.Errorf("%s: parted without a tie", name)
			}
		}
	}
	t.Logf("%d recordings with equal layout, %d parted, %d ties", equal, parted, ties)
	if equal < 3 || parted < 3 || ties < 10 {
		t.Errorf("only %d recordings with equal layout, %d parted, %d ties: too little was tried", equal, parted, ties)
	}
}

// checkTie makes sure of what a tie claims: one of the candidates was taken in
// each run, another one, and each was the first of its own order of addresses
// (the last, where segments are given back from the top).
func checkTie(t *testing.T, name string, x *tie) {
	t.Helper()
	var ref, dev *candidate
	for i := range x.Candidates {
		c := &x.Candidates[i]
		if c.Recorded {
			ref = c
		}
		if c.Device {
			dev = c
		}
	}
	if ref == nil || dev == nil || ref == dev {
		t.Errorf("%s: a tie without two blocks: %+v", name, x)
		return
	}
	lower := ref.RecordedAddr < dev.RecordedAddr && dev.DeviceAddr < ref.DeviceAddr
	upper := ref.RecordedAddr > dev.RecordedAddr && dev.DeviceAddr > ref.DeviceAddr
	if !lower && (!upper || x.Choice != choiceRelease) {
		t.Errorf("%s: addresses do not decide this: %+v", name, x)
	}
}

// step runs a lockstep without the checks before it, so that a test can spoil
// something on the way.
func spoilt(t *testing.T, rec *oracle.Recording, dev driver.Copier, opts []alloc.Option, spoil func(*lockstep)) (*lockstep, *outcome) {
	t.Helper()
	c := &checker{dev: dev}
	streams, err := c.streamsFor(rec)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLockstep(rec, nil, dev, streams, opts...)
	if err != nil {
		t.Fatal(err)
	}
	spoil(l)
	out, err := l.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l, out
}

// An engine that does not follow the rules differs, and nothing of it passes
// for a tie.
func TestOracleNotATie(t *testing.T) {
	conf := func(s string) []alloc.Option {
		cfg, err := settings.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return []alloc.Option{alloc.WithSettings(cfg)}
	}
	for _, x := range []struct {
		name, file string
		opts       []alloc.Option
		spoil      func(*oracle.Recording, *lockstep)
		what       string // the difference must be about
	}{
		{"another split rule", "oracle/mixed-default-1", conf("max_split_size_mb:20"), nil, ""},
		{"another rounding", "oracle/mixed-default-1", conf("roundup_power2_divisions:2"), nil, ""},
		{"another kind of segment", "oracle/streams-default-1", conf("expandable_segments:True"), nil, "something else"},
		{"another limit", "oracle/pressure-expand-1", nil, func(_ *oracle.Recording, l *lockstep) {
			limit, _ := l.dev.allocator.Limit()
			l.dev.allocator.SetLimit(limit - 64<<20)
		}, ""},
		{"a statistic", "oracle/lessons-default-1", nil, func(rec *oracle.Recording, _ *lockstep) {
			rec.Checkpoints[0].Stats["num_device_free"]++
		}, "num_device_free"},
		{"a block at the end", "oracle/mixed-expandgc6-1", nil, func(rec *oracle.Recording, _ *lockstep) {
			b := rec.Segments[0].Blocks
			b[len(b)-1].RequestedSize++
		}, "differs at the end"},
		{"events done too early", "verify/recordings/pending-5-1", nil, func(_ *oracle.Recording, l *lockstep) {
			for n := range 10000 {
				l.guide.done[n] = true
			}
		}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			rec := load(t, x.file)
			_, out := spoilt(t, rec, newScattered(1), x.opts, func(l *lockstep) {
				if x.spoil != nil {
					x.spoil(rec, l)
				}
			})
			if out.parted == nil {
				t.Fatal("no difference was seen")
			}
			t.Logf("operation %d: %s: recorded %s, device %s: %s", out.parted.Operation, out.parted.What, out.parted.Recorded, out.parted.Device, out.parted.NotTie)
			if out.parted.Tie != nil {
				t.Errorf("the difference passes for a tie: %+v", out.parted.Tie)
			}
			if !strings.Contains(out.parted.What, x.what) {
				t.Errorf("%q is not about %q", out.parted.What, x.what)
			}
		})
	}
}

// Two segments that are taken for each other while blocks of them are in use
// are seen as soon as something happens in them, and that is no tie.
func TestOracleSwappedSegments(t *testing.T) {
	rec := load(t, "oracle/lessons-default-1")
	swapped := false
	l, out := spoilt(t, rec, &swapping{Copier: newScattered(3), swap: &swapped}, nil, func(*lockstep) {})
	if !swapped {
		t.Fatal("nothing was swapped")
	}
	if out.parted == nil || out.parted.Tie != nil {
		t.Fatalf("parted at %+v", out.parted)
	}
	t.Logf("after %d ties, operation %d: %s: %s", len(l.ties), out.parted.Operation, out.parted.What, out.parted.NotTie)
}

// swapping is a device that hands out the address of another segment once.
type swapping struct {
	driver.Copier
	given []uint64
	swap  *bool
}

func (d *swapping) Malloc(size, stream uint64) (uint64, error) {
	if len(d.given) == 20 && !*d.swap {
		*d.swap = true
		return d.given[3], nil // which is in use
	}
	addr, err := d.Copier.Malloc(size, stream)
	d.given = append(d.given, addr)
	return addr, err
}

// A device that fails is never good, before a tie, after one, and where garbage
// collection could explain a difference; and what it gave is given back.
func TestOracleDeviceFails(t *testing.T) {
	for _, x := range []struct {
		name    string
		left    int
		refusal error // instead of errBroken
		after   bool  // a tie has parted the runs by then
	}{
		{name: "oracle/mixed-default-1", left: 30},
		{name: "oracle/mixed-default-1", left: 60, after: true},
		{name: "oracle/streams-default-1", left: 100, after: true},
		{name: "oracle/steps-gc6-1", left: 100, after: true},
		{name: "oracle/mixed-gc6-1", left: 30},
		{name: "oracle/mixed-default-1", left: 60, refusal: driver.ErrOutOfMemory, after: true},
	} {
		dev := newScattered(1)
		dev.left, dev.refusal = x.left, x.refusal
		r, err := (&checker{dev: dev}).recording(t.Context(), load(t, x.name))
		if err != nil {
			t.Fatal(err)
		}
		if dev.left != 0 {
			t.Errorf("%s: the device did not break", x.name)
		}
		if r.OK || r.Parted == nil {
			t.Errorf("%s, %d segments: a broken device is good: %+v", x.name, x.left, r)
		}
		reason := "the device refused memory"
		if x.refusal == nil {
			reason = errBroken.Error()
		}
		if r.Performed == r.Operations || !strings.Contains(r.Failed, reason) || r.Explained {
			t.Errorf("%s: performed %d of %d, explained %v, the reason is %q", x.name, r.Performed, r.Operations, r.Explained, r.Failed)
		}
		if tied := r.Parted != nil && r.Parted.Tie != nil; tied != x.after {
			t.Errorf("%s, %d segments: parted at a tie: %v", x.name, x.left, tied)
		}
		if len(dev.used) != 0 {
			t.Errorf("%s: %d places were not given back", x.name, len(dev.used))
		}
	}
}

// Equal blocks go back in the order of their addresses within one walk.
func TestMisordered(t *testing.T) {
	free := func(addr, size uint64) alloc.Decision {
		return alloc.Released{Segment: alloc.Span{Addr: addr, Size: size}}
	}
	unmap := func(addr, size uint64) alloc.Decision {
		s := alloc.Span{Addr: addr, Size: size}
		return alloc.Unmapping{Block: s, Unmapped: s, Granule: 2}
	}
	full, aging := alloc.FullRelease{}, func(average float64) alloc.Decision { return alloc.Aging{Average: average, Released: true} }
	for _, x := range []struct {
		name      string
		decisions []alloc.Decision
		bad       bool
	}{
		{"ascending", []alloc.Decision{full, free(1, 20), free(2, 20), unmap(5, 20), unmap(6, 20)}, false},
		{"descending", []alloc.Decision{full, free(2, 20), free(1, 20)}, true},
		{"not side by side", []alloc.Decision{full, free(2, 20), unmap(7, 8), free(1, 20)}, true},
		{"unmapped, descending", []alloc.Decision{full, unmap(6, 20), unmap(5, 20)}, true},
		{"other sizes", []alloc.Decision{full, free(2, 20), free(1, 40)}, false},
		{"another stream", []alloc.Decision{full, free(12, 20), free(1, 20)}, false},
		{"another walk", []alloc.Decision{full, free(2, 20), full, free(1, 20)}, false},
		{"rounds of a collection", []alloc.Decision{aging(3), free(2, 20), aging(4), free(1, 20)}, false},
		{"one round", []alloc.Decision{aging(3), free(2, 20), aging(3), free(1, 20)}, true},
		{"for one request", []alloc.Decision{alloc.TargetedRelease{Want: 30}, free(2, 20), free(1, 20)}, false},
		{"without an event", []alloc.Decision{full, free(99, 20)}, true},
	} {
		l := opLog{decisions: x.decisions}
		for addr := range uint64(20) {
			for _, a := range []alloc.Action{alloc.ActionSegmentFree, alloc.ActionSegmentUnmap} {
				l.add(entry{Action: a.String(), Addr: addr, Stream: addr / 10})
			}
		}
		if why := l.misordered(); (why != "") != x.bad {
			t.Errorf("%s: %q", x.name, why)
		}
	}
}

// A segment that was chosen against the order of addresses is no tie.
func TestFromEnd(t *testing.T) {
	list := []candidate{{RecordedAddr: 1, DeviceAddr: 30}, {RecordedAddr: 2, DeviceAddr: 20}, {RecordedAddr: 3, DeviceAddr: 10}}
	dev := func(c candidate) uint64 { return c.DeviceAddr }
	taken := func(addrs ...uint64) func(candidate) bool {
		return func(c candidate) bool {
			for _, a := range addrs {
				if c.DeviceAddr == a {
					return true
				}
			}
			return false
		}
	}
	for _, x := range []struct {
		from  end
		taken []uint64
		want  bool
	}{
		{lowest, []uint64{10}, true},
		{lowest, []uint64{20}, false},
		{lowest, []uint64{30}, false},
		{lowest, nil, false},
		{highest, []uint64{30}, true},
		{highest, []uint64{30, 20}, true},
		{highest, []uint64{30, 10}, false},
		{highest, []uint64{10}, false},
	} {
		if got := fromEnd(list, x.from, dev, taken(x.taken...)); got != x.want {
			t.Errorf("highest %v, taken %v: %v", x.from, x.taken, got)
		}
	}
}
