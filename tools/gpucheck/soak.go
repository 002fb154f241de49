package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// soakPlan says how long and how hard.
type soakPlan struct {
	time    time.Duration
	seed    uint64
	workers int
	limit   uint64
	largest uint64
	conf    string

	// What may be there at the end that was not there after warming up.
	rss    uint64
	device uint64
}

var fullSoak = soakPlan{
	time: 30 * time.Second, seed: 1, workers: 8, limit: 2 << 30, largest: 64 << 20,
	conf: "expandable_segments:True",
	rss:  32 << 20, device: 32 << 20,
}

// level is what the process holds at one moment.
type level struct {
	RSS        uint64 `json:"rss_bytes"`
	DeviceFree uint64 `json:"device_free_bytes"`
	Reserved   int64  `json:"reserved_bytes"`
	Goroutines int    `json:"goroutines"`
}

// soakReport is what `gpucheck soak` found.
type soakReport struct {
	Device      deviceInfo `json:"device"`
	Conf        string     `json:"conf"`
	Workers     int        `json:"goroutines"`
	LimitBytes  uint64     `json:"limit_bytes"`
	Start       level      `json:"start"`
	Warm        level      `json:"warm"` // after a fifth of the time
	End         level      `json:"end"`
	PeakBytes   int64      `json:"peak_reserved_bytes"`
	Allocations int64      `json:"allocations"`
	Handovers   int64      `json:"handovers"` // blocks that another goroutine used and freed
	OOMs        int64      `json:"ooms"`
	Retries     int64      `json:"retries"`
	Checked     uint64     `json:"checked_bytes"`
	Mismatches  uint64     `json:"mismatching_words"`
	Calls       calls      `json:"device_calls"`
	Problems    []string   `json:"problems"`
	OK          bool       `json:"ok"`
	Seconds     float64    `json:"seconds"`
}

// soaker is the state that the goroutines share.
type soaker struct {
	plan      soakPlan
	rig       *rig
	dev       *ledger
	allocator *alloc.Allocator
	inbox     []chan parcel
}

// parcel is a block on its way to another goroutine, with the event after
// which it is filled.
type parcel struct {
	block held
	ready driver.Event
}

// soak lets many goroutines use one allocator and compares what the process
// holds after warming up with what it holds at the end. Both times everything
// is freed and the cache is empty.
func soak(ctx context.Context, r *rig, pl soakPlan, progress io.Writer) (*soakReport, error) {
	cfg, err := settings.Parse(pl.conf)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	s := &soaker{plan: pl, rig: r, dev: newLedger(r.dev)}
	s.allocator = alloc.New(s.dev, alloc.WithSettings(cfg))
	s.allocator.SetLimit(pl.limit)
	out := &soakReport{Device: describeDevice(r.dev), Conf: pl.conf, Workers: pl.workers, LimitBytes: pl.limit, Problems: []string{}}
	if out.Start, err = s.level(); err != nil {
		return nil, err
	}
	workers := make([]*worker, pl.workers)
	for i := range workers {
		w, err := s.newWorker(i)
		if err != nil {
			return nil, err
		}
		workers[i] = w
	}
	for _, phase := range []struct {
		name string
		time time.Duration
		to   *level
	}{{"warming up", pl.time / 5, &out.Warm}, {"soaking", pl.time - pl.time/5, &out.End}} {
		if err := s.phase(ctx, workers, phase.time); err != nil {
			return nil, err
		}
		if *phase.to, err = s.level(); err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "%s: %s resident, %s free on the device\n", phase.name, units.Size(phase.to.RSS), units.Size(phase.to.DeviceFree))
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, w := range workers {
		out.add(w)
		if err := w.close(); err != nil {
			return nil, err
		}
	}
	st := s.allocator.Stats()
	out.PeakBytes, out.OOMs, out.Retries = st.ReservedBytes.All.Peak, st.NumOOMs, st.NumAllocRetries
	out.Calls = s.dev.count()
	if left := s.dev.left(); left != "" {
		out.Problems = append(out.Problems, "the device has not got back "+left)
	}
	out.Seconds = time.Since(start).Seconds()
	out.judge(pl)
	return out, nil
}

// phase lets all workers work for a while, then frees everything.
func (s *soaker) phase(ctx context.Context, workers []*worker, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	s.inbox = make([]chan parcel, len(workers))
	for i := range s.inbox {
		s.inbox[i] = make(chan parcel, 16)
	}
	var wg sync.WaitGroup
	errs := make([]error, len(workers))
	for i, w := range workers {
		wg.Go(func() {
			if errs[i] = w.work(ctx); errs[i] != nil {
				cancel() // the others need not go on
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, w := range workers { // what was sent too late to be taken
		close(s.inbox[i])
		for p := range s.inbox[i] {
			if err := w.take(p); err != nil {
				return err
			}
		}
		if err := w.finish(); err != nil {
			return err
		}
	}
	return s.allocator.EmptyCache()
}

// level measures after Go has given back what it does not need.
func (s *soaker) level() (level, error) {
	runtime.GC()
	debug.FreeOSMemory()
	free, _, err := s.dev.MemInfo()
	return level{
		RSS: residentBytes(), DeviceFree: free,
		Reserved: s.allocator.Stats().ReservedBytes.All.Current, Goroutines: runtime.NumGoroutine(),
	}, err
}

// residentBytes is the memory of this process that is in the machine's; 0 where
// the system does not say.
func residentBytes() uint64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

func (r *soakReport) add(w *worker) {
	r.Allocations += w.allocations
	r.Handovers += w.handovers
	r.Checked += w.checked
	r.Mismatches += w.mismatches
	r.Problems = append(r.Problems, w.problems...)
}

// judge compares with the plan.
func (r *soakReport) judge(pl soakPlan) {
	grown := func(what string, before, after, allowed uint64) {
		if after > before+allowed {
			r.Problems = append(r.Problems, fmt.Sprintf("%s grew from %s to %s; %s more are allowed",
				what, units.Size(before), units.Size(after), units.Size(allowed)))
		}
	}
	grown("resident memory", r.Warm.RSS, r.End.RSS, pl.rss)
	grown("memory in use on the device", r.Device.TotalBytes-r.Warm.DeviceFree, r.Device.TotalBytes-r.End.DeviceFree, pl.device)
	// The limit is compared with the size of a segment, and memory is mapped in
	// granules, of which no plan changes the size.
	rules := alloc.RulesOf(settings.Default(), pytorch.Default)
	if uint64(r.PeakBytes) > pl.limit+rules.Granule(true) {
		r.Problems = append(r.Problems, fmt.Sprintf("%s were reserved at the peak: more than the limit and one granule", units.Size(uint64(r.PeakBytes))))
	}
	if r.Warm.Reserved != 0 || r.End.Reserved != 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("%d and %d bytes are reserved after everything was freed", r.Warm.Reserved, r.End.Reserved))
	}
	if r.End.Goroutines > r.Warm.Goroutines {
		r.Problems = append(r.Problems, fmt.Sprintf("%d goroutines after warming up, %d at the end", r.Warm.Goroutines, r.End.Goroutines))
	}
	for what, n := range map[string]int64{"allocations": r.Allocations, "handovers": r.Handovers, "retries": r.Retries} {
		if n == 0 {
			r.Problems = append(r.Problems, "nothing was tested: no "+what)
		}
	}
	r.OK = len(r.Problems) == 0 && r.Mismatches == 0
}

func (r *soakReport) good() bool { return r.OK }

func (r *soakReport) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.Device)
	fmt.Fprintf(w, "%d goroutines, limit %s, %s: %.1f s\n", r.Workers, units.Size(r.LimitBytes), confName(r.Conf), r.Seconds)
	fmt.Fprintf(w, "  %s allocations, %s handed over to another goroutine, %s out of memory, %s retries\n",
		count(r.Allocations), count(r.Handovers), count(r.OOMs), count(r.Retries))
	fmt.Fprintf(w, "  %s segments, %s maps, %s unmaps, %s events\n", count(r.Calls.Segments), count(r.Calls.Maps), count(r.Calls.Unmaps), count(r.Calls.Events))
	fmt.Fprintf(w, "  %s checked, %d words mismatch; peak %s reserved\n", units.Size(r.Checked), r.Mismatches, units.Size(uint64(r.PeakBytes)))
	for _, l := range []struct {
		name string
		level
	}{{"at the start", r.Start}, {"after warming up", r.Warm}, {"at the end", r.End}} {
		fmt.Fprintf(w, "  %-17s %s resident, %s free on the device, %s reserved, %d goroutines\n",
			l.name, units.Size(l.RSS), units.Size(l.DeviceFree), units.Size(uint64(l.Reserved)), l.Goroutines)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "  PROBLEM: %s\n", p)
	}
	fmt.Fprintf(w, "\n%s\n", verdict(r.OK))
}

// randomSize is a random number of whole words: every order of magnitude up to
// the largest is as likely as the others.
func randomSize(rng *rand.Rand, largest uint64) uint64 {
	return max(8, uint64(math.Exp(rng.Float64()*math.Log(float64(largest)))))&^7 + 8*rng.Uint64N(2)
}
