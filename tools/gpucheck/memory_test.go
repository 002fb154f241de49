package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
)

// hostRig is a rig in host memory; dev may stand in front of it.
func hostRig(t *testing.T, front func(driver.Copier) driver.Copier) *rig {
	t.Helper()
	dev := host.New(host.Config{Memory: 4 << 30})
	t.Cleanup(func() {
		if held := dev.Held(); held != 0 {
			t.Errorf("the device still holds %d bytes", held)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{dev: dev, painter: func(slots int) (painter, error) { return newHostPainter(dev, slots), nil }}
	if front != nil {
		r.dev = front(dev)
	}
	return r
}

// testPlan is small enough for every day, and tight.
func testPlan(operations int) plan {
	p := smallPlan
	p.operations, p.longest, p.confs = operations, time.Minute, confs
	return p
}

func TestMemory(t *testing.T) {
	for seed := range uint64(3) {
		pl := testPlan(600)
		pl.seed = seed
		got, err := checkMemory(t.Context(), hostRig(t, nil), pl, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if !got.OK {
			var b strings.Builder
			got.write(&b)
			t.Errorf("seed %d:\n%s", seed, b.String())
		}
		if len(got.Programs) != len(confs) || len(got.Control) != 2 {
			t.Errorf("%d programs, %d controls", len(got.Programs), len(got.Control))
		}
		if c := got.Control[1]; c.RecordStream || c.Mismatches == 0 {
			t.Errorf("the control without record_stream saw nothing: %+v", c)
		}
	}
}

// A program that exercises nothing is no proof.
func TestMemoryNothingTested(t *testing.T) {
	pl := testPlan(40)
	pl.limit = 1 << 30
	pl.confs = confs[1:2]
	got, err := checkMemory(t.Context(), hostRig(t, nil), pl, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p := got.Programs[0]
	if got.OK || p.Mismatches != 0 || len(p.Problems) != 0 || !strings.Contains(strings.Join(p.Missing, ","), "retries") {
		t.Errorf("OK %v, missing %q, problems %q", got.OK, p.Missing, p.Problems)
	}
}

// hasty says that every event is done.
type hasty struct{ driver.Copier }

func (hasty) EventDone(driver.Event) (bool, error) { return true, nil }
func (hasty) WaitEvent(driver.Event) error         { return nil }

// overlapping hands every other segment out on top of the one before, once
// there are some.
type overlapping struct {
	driver.Copier
	n    int
	last uint64
	size uint64
	lent map[uint64]bool
}

func (d *overlapping) Malloc(size, stream uint64) (uint64, error) {
	if d.n++; d.n > 4 && d.last != 0 && size <= d.size && !d.lent[d.last+1<<20] {
		d.lent[d.last+1<<20] = true
		return d.last + 1<<20, nil
	}
	addr, err := d.Copier.Malloc(size+1<<20, stream)
	d.last, d.size = addr, size
	return addr, err
}

func (d *overlapping) Free(addr, size uint64) error {
	if d.lent[addr] {
		delete(d.lent, addr)
		return nil
	}
	if addr == d.last {
		d.last = 0
	}
	return d.Copier.Free(addr, size+1<<20)
}

// What goes wrong below the program is found by it.
func TestMemoryFindsFaults(t *testing.T) {
	for _, x := range []struct {
		name  string
		front func(driver.Copier) driver.Copier
		want  string
	}{
		{"events that are done too early", func(d driver.Copier) driver.Copier { return hasty{d} }, "words are not as written"},
		{"segments on top of each other", func(d driver.Copier) driver.Copier {
			return &overlapping{Copier: d, lent: map[uint64]bool{}}
		}, "lies on block"},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := hostRig(t, x.front)
			streams, err := openStreams(r, 3)
			if err != nil {
				t.Fatal(err)
			}
			pl := testPlan(600)
			pl.spin = 4 * time.Millisecond
			paint, err := r.painter(pl.slots)
			if err != nil {
				t.Fatal(err)
			}
			p, err := newProgram(r, pl, "", streams, paint)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.run(t.Context()); err != nil {
				t.Logf("ended with %v", err) // a device that lies may also break it
			}
			if err := p.dev.release(); err != nil {
				t.Log(err)
			}
			if text := strings.Join(p.report.Problems, "\n"); p.report.OK || !strings.Contains(text, x.want) {
				t.Errorf("nothing about %q in %q", x.want, text)
			}
		})
	}
}

func TestSoak(t *testing.T) {
	pl := fullSoak
	pl.time, pl.workers, pl.limit, pl.largest = 1500*time.Millisecond, 4, 48<<20, 4<<20
	for _, conf := range []string{"", pl.conf} {
		pl.conf = conf
		got, err := soak(t.Context(), hostRig(t, nil), pl, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if !got.OK {
			var b strings.Builder
			got.write(&b)
			t.Errorf("%s", b.String())
		}
	}
}

func TestSoakSeesGrowth(t *testing.T) {
	good := soakReport{Device: deviceInfo{TotalBytes: 8 << 30}, Allocations: 1, Handovers: 1, Retries: 1, Start: level{DeviceFree: 4 << 30}}
	good.Warm = level{RSS: 100 << 20, DeviceFree: 4 << 30, Goroutines: 9}
	good.End = good.Warm
	for name, x := range map[string]struct {
		change func(*soakReport)
		want   string
	}{
		"nothing":    {func(*soakReport) {}, ""},
		"resident":   {func(r *soakReport) { r.End.RSS += 33 << 20 }, "resident memory grew from 100.00 MiB to 133.00 MiB"},
		"device":     {func(r *soakReport) { r.End.DeviceFree -= 33 << 20 }, "on the device grew"},
		"peak":       {func(r *soakReport) { r.PeakBytes = 2<<30 + 21<<20 }, "at the peak"},
		"reserved":   {func(r *soakReport) { r.End.Reserved = 1 }, "are reserved after everything was freed"},
		"goroutines": {func(r *soakReport) { r.End.Goroutines++ }, "goroutines"},
		"handovers":  {func(r *soakReport) { r.Handovers = 0 }, "nothing was tested: no handovers"},
	} {
		r := good
		x.change(&r)
		r.judge(fullSoak)
		if r.OK != (x.want == "") || !strings.Contains(strings.Join(r.Problems, "\n"), x.want) {
			t.Errorf("%s: OK %v, problems %q", name, r.OK, r.Problems)
		}
	}
}
