package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// blind are the runs that were planned before they were measured, with those
// plans.
func blind(t *testing.T) ([]plancompare.BlindCase, map[string]plancompare.Prediction) {
	t.Helper()
	cases, err := plancompare.Blind()
	if err != nil {
		t.Fatal(err)
	}
	before, err := plancompare.Predicted()
	if err != nil {
		t.Fatal(err)
	}
	return cases, before
}

// blindQuestion is a case as `ashlar plan --gpu h200` gets it.
func blindQuestion(t *testing.T, f plancompare.Fields) Question {
	t.Helper()
	q := Question{NoLevers: true, Conf: f.Conf(), Capacity: Capacity{Card: gpuOf(t, "h200")}}
	var err error
	if q.Model, err = f.Model(); err != nil {
		t.Fatal(err)
	}
	options, err := f.Options()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range options {
		if err := q.Options.Set(o[0], o[1]); err != nil {
			t.Fatal(err)
		}
	}
	if q.Settings, err = settings.Parse(q.Conf); err != nil {
		t.Fatal(err)
	}
	return q
}

// misses are the errors of many plans, as parts of what was measured.
type misses []float64

func (m *misses) add(planned, measured uint64) float64 {
	e := float64(planned)/float64(measured) - 1
	*m = append(*m, math.Abs(e))
	return e
}

func (m misses) median() float64 {
	s := slices.Sorted(slices.Values(m))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (m misses) worst() float64 { return slices.Max(m) }

// The plans that were committed before anything of them was measured hold the
// bars, and what was planned about limits, expandable segments and the device
// came true. This is the record of what was known then: it is not renewed.
func TestPredictionsCameTrue(t *testing.T) {
	cases, before := blind(t)
	var allocated, reserved, expandable, device misses
	var survived, died int
	for i := range cases {
		c := &cases[i]
		p, ok := before[c.Name]
		if !ok {
			t.Fatalf("%s was not planned before it was measured", c.Name)
		}
		switch {
		case c.Limit > p.SmallestLimit:
			if survived++; c.Died != "" {
				t.Errorf("%s dies under %d, and %d should do: %s", c.Name, c.Limit, p.SmallestLimit, c.Died)
			}
		case c.Limit > 0:
			if died++; c.Died == "" {
				t.Errorf("%s survives under %d, and %d should be needed", c.Name, c.Limit, p.SmallestLimit)
			}
		default:
			allocated.add(p.Allocated, c.PeakAllocated)
			reserved.add(p.Reserved, c.PeakReserved)
			if !in(int64(c.PeakAllocated), p.Low, p.High) {
				t.Errorf("%s: %d allocated is not from %d to %d", c.Name, c.PeakAllocated, p.Low, p.High)
			}
			if c.Spec.Conf() != "" {
				expandable.add(p.Reserved, c.PeakReserved)
			}
			if c.Spec.Alone() {
				device.add(p.Device, c.DeviceUsed)
			}
		}
	}
	if len(allocated) < 52 || survived != 4 || died != 4 || len(expandable) != 3 || len(device) != 5 {
		t.Errorf("%d runs, %d under limits above and %d below, %d with expandable segments, %d alone on the device",
			len(allocated), survived, died, len(expandable), len(device))
	}
	for _, bar := range []struct {
		what          string
		got           misses
		median, worst float64
	}{
		{"allocated", allocated, 0.005, 0.03},
		{"reserved", reserved, 0.015, 0.06},
		{"reserved with expandable segments", expandable, 0.03, 0.03},
		{"used on the device", device, 0.02, 0.02},
	} {
		if bar.got.median() > bar.median || bar.got.worst() > bar.worst {
			t.Errorf("%s: off by %.3f %% in the median, %.3f %% at most", bar.what, 100*bar.got.median(), 100*bar.got.worst())
		}
	}
}

// What the range says about past misses is what they were, and it allows more.
func TestMarginIsMeasured(t *testing.T) {
	cases, before := blind(t)
	var allocated, reserved misses
	for i := range cases {
		if c := &cases[i]; c.Limit == 0 {
			allocated.add(before[c.Name].Allocated, c.PeakAllocated)
			reserved.add(before[c.Name].Reserved, c.PeakReserved)
		}
	}
	p := presets[0]
	for _, want := range []string{
		fmt.Sprintf("%d runs", len(allocated)), fmt.Sprintf("%.2f %% of allocated", 100*allocated.worst()), fmt.Sprintf("%.2f %% of reserved", 100*reserved.worst()),
	} {
		if !strings.Contains(p.why, want) {
			t.Errorf("the margin's reason does not say %q: %s", want, p.why)
		}
	}
	if min(p.missLow, p.missHigh) < allocated.worst() || min(p.missReservedLow, p.missReservedHigh) < reserved.worst() {
		t.Errorf("the margin is less than %.3f %% and %.3f %%", 100*allocated.worst(), 100*reserved.worst())
	}
}

// Today's plans of the same runs are as good, and their ranges hold what was
// measured.
func TestBlindCasesToday(t *testing.T) {
	short.Skip(t)
	cases, before := blind(t)
	answers := map[string]*Answer{}
	var held, n int
	for i := range cases {
		c := &cases[i]
		if c.Limit > 0 {
			continue
		}
		a, err := Ask(t.Context(), blindQuestion(t, c.Spec))
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		answers[c.Name] = a
		p := before[c.Name]
		for _, x := range []struct {
			what                    string
			today, before, measured uint64
		}{
			{"allocated", a.PeakAllocated, p.Allocated, c.PeakAllocated},
			{"reserved", a.PeakReserved, p.Reserved, c.PeakReserved},
		} {
			var now, then misses
			now.add(x.today, x.measured)
			then.add(x.before, x.measured)
			if now[0] > then[0]+0.001 {
				t.Errorf("%s: %s is off by %.3f %%, and it was %.3f %%", c.Name, x.what, 100*now[0], 100*then[0])
			}
		}
		if a.Parameters != c.Params {
			t.Errorf("%s: %d parameters, measured %d", c.Name, a.Parameters, c.Params)
		}
		n++
		r := &a.Range
		if in(int64(c.PeakAllocated), r.Low, r.High) && in(int64(c.PeakReserved), r.ReservedLow, r.ReservedHigh) {
			held++
		} else {
			t.Logf("%s: %d allocated, %d reserved is not in %+v", c.Name, c.PeakAllocated, c.PeakReserved, *r)
		}
		if width := float64(r.High-r.Low) / float64(a.PeakAllocated); width > 0.05 {
			t.Errorf("%s: the range is %.1f %% wide", c.Name, 100*width)
		}
	}
	if 20*held < 19*n {
		t.Errorf("the ranges hold the peaks of %d of %d runs", held, n)
	}
	for i := range cases {
		c := &cases[i]
		if a := answers[c.Name]; c.Limit > 0 && a != nil && (c.Limit >= a.SmallestLimit) == (c.Died != "") {
			t.Errorf("%s under %d: died %q, and the plan needs %d", c.Name, c.Limit, c.Died, a.SmallestLimit)
		}
	}
}

// The one run that was missed was missed by where the driver put segments: what
// is requested is exact, and with segments in the reverse order of addresses the
// peaks come close.
func TestMissIsPlacement(t *testing.T) {
	cases, before := blind(t)
	n := 0
	for i := range cases {
		c := &cases[i]
		if c.Limit > 0 || before[c.Name].Reserved == c.PeakReserved {
			continue
		}
		n++
		q := blindQuestion(t, c.Spec)
		p, _, err := q.plan(t.Context(), q.Options, 0)
		if err != nil {
			t.Fatal(err)
		}
		// The run has a tensor of 4 bytes that is not the model's.
		if p.requested+4 != c.PeakRequested {
			t.Errorf("%s: %d requested, measured %d", c.Name, p.requested, c.PeakRequested)
		}
		o, err := p.program.Run(t.Context(), replay.Conditions{Settings: q.Settings, From: p.run.ledger.Scored(), Mirrored: true})
		if err != nil {
			t.Fatal(err)
		}
		var off misses
		off.add(o.Allocated.Bytes, c.PeakAllocated)
		off.add(o.Reserved.Bytes, c.PeakReserved)
		if off.worst() > 0.001 {
			t.Errorf("%s: %d allocated, %d reserved the other way round; measured %d, %d", c.Name, o.Allocated.Bytes, o.Reserved.Bytes, c.PeakAllocated, c.PeakReserved)
		}
	}
	if n != 1 {
		t.Errorf("%d misses", n)
	}
}

// Runs that died under a limit ended at the request that the plan names, with
// as much reserved.
func TestDeathsArePlanned(t *testing.T) {
	cases, _ := blind(t)
	n := 0
	for i := range cases {
		c := &cases[i]
		if c.Died == "" {
			continue
		}
		n++
		q := blindQuestion(t, c.Spec)
		p, _, err := q.plan(t.Context(), q.Options, 0)
		if err != nil {
			t.Fatal(err)
		}
		o, err := p.program.Run(t.Context(), replay.Conditions{Settings: q.Settings, Limit: c.Limit})
		if err != nil {
			t.Fatal(err)
		}
		if !o.Fails {
			t.Errorf("%s passes under %d", c.Name, c.Limit)
			continue
		}
		if want := "Tried to allocate " + units.Size(o.First.Requested) + "."; !strings.Contains(c.Died, want) || o.Reserved.Bytes != c.PeakReserved {
			t.Errorf("%s: planned to end with %q and %d reserved; it ended with %q and %d", c.Name, want, o.Reserved.Bytes, c.Died, c.PeakReserved)
		}
	}
	if n != 4 {
		t.Errorf("%d runs died", n)
	}
}
