package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// The settings that programs run under: segments as they come, mapped memory,
// and the rules that release or refuse.
var confs = []string{
	"",
	"expandable_segments:True",
	"max_split_size_mb:20,garbage_collection_threshold:0.6",
	"expandable_segments:True,garbage_collection_threshold:0.6,roundup_power2_divisions:4",
}

// fullPlan keeps a GPU busy for less than a minute.
var fullPlan = plan{
	seed: 1, operations: 15000, longest: 10 * time.Second,
	limit: 1 << 30, largest: 96 << 20, streams: 4, slots: 1024, spin: 2 * time.Millisecond, confs: confs,
}

// smallPlan is for a run under compute-sanitizer, which makes every access
// many times slower.
var smallPlan = plan{
	seed: 1, operations: 400, longest: 3 * time.Second,
	limit: 64 << 20, largest: 8 << 20, streams: 2, slots: 256, spin: 500 * time.Microsecond, confs: confs[:2],
}

// memoryReport is what `gpucheck memory` found.
type memoryReport struct {
	Device   deviceInfo      `json:"device"`
	Programs []programReport `json:"programs"`
	Control  []controlReport `json:"control"`
	OK       bool            `json:"ok"`
}

// checkMemory runs a program under each of the plan's settings, and the
// control.
func checkMemory(ctx context.Context, r *rig, pl plan, progress io.Writer) (_ *memoryReport, err error) {
	out := &memoryReport{Device: describeDevice(r.dev), OK: true}
	streams, err := openStreams(r, pl.streams)
	defer closeStreams(r, streams)
	if err != nil {
		return nil, err
	}
	paint, err := r.painter(pl.slots)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := paint.close(); err == nil {
			err = closing
		}
	}()
	for _, guarded := range []bool{true, false} {
		c, err := control(r, streams, paint, guarded)
		if err != nil {
			return nil, fmt.Errorf("in the control: %w", err)
		}
		out.Control = append(out.Control, *c)
		out.OK = out.OK && c.OK
	}
	for _, conf := range pl.confs {
		p, err := newProgram(r, pl, conf, streams, paint)
		if err != nil {
			return nil, err
		}
		if err := p.run(ctx); err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "%s: %d operations, %.1f s\n", confName(conf), p.report.Operations, p.report.Seconds)
		out.Programs = append(out.Programs, p.report)
		out.OK = out.OK && p.report.OK
	}
	return out, nil
}

// openStreams gives stream 0 and n more.
func openStreams(r *rig, n int) ([]uint64, error) {
	streams := []uint64{0}
	for range n {
		s, err := r.dev.NewStream()
		if err != nil {
			return streams, err
		}
		streams = append(streams, s)
	}
	return streams, nil
}

func closeStreams(r *rig, streams []uint64) {
	for _, s := range streams[1:] {
		_ = r.dev.CloseStream(s)
	}
}

// finish frees everything, reads the last results and gives all memory back.
func (p *program) finish() error {
	if err := windUp(p.dev, len(p.live), p.free, p.readResults, &p.fences); err != nil {
		return err
	}
	for _, pool := range p.pools {
		if err := pool.Close(); err != nil {
			return err
		}
	}
	if err := p.allocator.EmptyCache(); err != nil {
		return err
	}
	if err := p.allocator.CheckInvariants(); err != nil {
		p.problem("%v", err)
	}
	s := p.allocator.Stats()
	p.report.Retries, p.report.OOMs, p.report.PeakBytes = s.NumAllocRetries, s.NumOOMs, s.ReservedBytes.All.Peak
	if n := s.ReservedBytes.All.Current; n != 0 {
		p.problem("%d bytes are reserved after everything was freed and the cache emptied", n)
	}
	if s := p.dev.left(); s != "" {
		p.problem("the device has not got back %s", s)
	}
	p.report.Calls = p.dev.count()
	return nil
}

// judge decides whether the program found nothing wrong, and enough to say so.
func (p *program) judge() {
	r := &p.report
	expandable := strings.Contains(r.Conf, "expandable_segments:True")
	for _, x := range []struct {
		what   string
		n      int64
		wanted bool
	}{
		{"segments made", r.Calls.Segments, !expandable},
		{"segments released", r.Calls.Released, !expandable},
		{"ranges reserved", r.Calls.Ranges, expandable},
		{"maps", r.Calls.Maps, expandable},
		{"unmaps", r.Calls.Unmaps, expandable},
		{"retries", r.Retries, true},
		{"out of memory", r.OOMs, true},
		{"frees that had to wait", r.Calls.NotDone, true},
		{"uses on other streams", r.OtherStreams, true},
		{"allocations from pools", r.PoolAllocations, true},
		{"empty_cache", r.EmptyCaches, true},
		{"checks", r.Checks, true},
	} {
		if x.wanted && x.n == 0 {
			r.Missing = append(r.Missing, x.what)
		}
	}
	r.OK = r.Mismatches == 0 && len(r.Problems) == 0 && len(r.Missing) == 0
}

func confName(conf string) string {
	if conf == "" {
		return "default settings"
	}
	return conf
}

func (r *memoryReport) good() bool { return r.OK }

func (r *memoryReport) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.Device)
	for _, c := range r.Control {
		fmt.Fprintln(w, c.String())
	}
	for i := range r.Programs {
		p := &r.Programs[i]
		fmt.Fprintf(w, "\n%s\n", confName(p.Conf))
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range [][2]string{
			{"operations", fmt.Sprintf("%s in %.1f s: %s allocations (%s from pools), %s frees, %s uses on other streams, %s empty_cache", count(p.Operations), p.Seconds,
				count(p.Allocations), count(p.PoolAllocations), count(p.Frees), count(p.OtherStreams), count(p.EmptyCaches))},
			{"pressure", fmt.Sprintf("peak %s reserved, %s retries, %s out of memory", units.Size(uint64(p.PeakBytes)), count(p.Retries), count(p.OOMs))},
			{"device", fmt.Sprintf("%s segments made, %s released, %s ranges reserved, %s maps, %s unmaps, %s got in all", count(p.Calls.Segments),
				count(p.Calls.Released), count(p.Calls.Ranges), count(p.Calls.Maps), count(p.Calls.Unmaps), units.Size(p.Calls.GotBytes))},
			{"events", fmt.Sprintf("%s recorded, %s times one was not done yet", count(p.Calls.Events), count(p.Calls.NotDone))},
			{"bytes", fmt.Sprintf("%s written, %s checked in %s checks", units.Size(p.WrittenBytes), units.Size(p.CheckedBytes), count(p.Checks))},
			{"mismatches", fmt.Sprintf("%s words", count(int64(p.Mismatches)))},
		} {
			fmt.Fprintf(tw, "  %s\t%s\n", row[0], row[1])
		}
		tw.Flush()
		for _, s := range p.Problems {
			fmt.Fprintf(w, "  PROBLEM: %s\n", s)
		}
		for _, s := range p.Missing {
			fmt.Fprintf(w, "  NOT TESTED: %s did not happen\n", s)
		}
	}
	fmt.Fprintf(w, "\n%s\n", verdict(r.OK))
}

func verdict(ok bool) string {
	if ok {
		return "all as it should be"
	}
	return "NOT as it should be"
}

func count[N int | int64](n N) string { return units.Count(int64(n)) }
