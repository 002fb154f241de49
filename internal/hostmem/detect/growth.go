package detect

import (
	"context"
	"errors"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// Growth is how the RSS of a process changed while it was watched.
type Growth struct {
	Seconds       float64 `json:"watched_s"`
	Samples       int     `json:"samples"`
	FirstRSSBytes uint64  `json:"first_rss_bytes"`
	LastRSSBytes  uint64  `json:"last_rss_bytes"`
	MinRSSBytes   uint64  `json:"min_rss_bytes"`
	MaxRSSBytes   uint64  `json:"max_rss_bytes"`
	// BytesPerHour is the slope of the straight line that fits the samples
	// best.
	BytesPerHour float64 `json:"rss_bytes_per_hour"`
	// Execs is how often it began to run another program. All figures are those
	// since the last time.
	Execs int `json:"execs"`
	// Ended is set if the process ended before the time was over.
	Ended bool `json:"ended"`
}

// growthEvery is the time between samples: ten a second cost next to nothing.
const growthEvery = 100 * time.Millisecond

// reading is what is seen of a process at one moment.
type reading struct {
	rss     uint64
	program string // a mark, as [proc.Program] gives it
}

// watchProcess samples a process that ran a program when it was looked into. It
// returns what it has when the context ends or the process does.
func watchProcess(ctx context.Context, pid int, d time.Duration, program string) (*Growth, error) {
	w := &watcher{pid: pid}
	if err := w.open(); err != nil {
		return nil, err
	}
	defer func() { w.sampler.Close() }()
	return watch(ctx, d, program, w.read)
}

// watcher reads one process, by its first thread or, when that has ended, another.
type watcher struct {
	pid, thread int
	sampler     *proc.Sampler
}

func (w *watcher) open() error {
	w.thread = proc.LivingThread(w.pid)
	if w.thread == 0 {
		w.thread = w.pid // it says what is wrong
	}
	sampler, err := proc.NewSamplerOf(w.thread)
	if err != nil {
		return err
	}
	w.sampler = sampler
	return nil
}

// execTries is how often a reading is taken anew because the program changed
// within it.
const execTries = 10

func (w *watcher) read() (r reading, err error) {
	for range execTries {
		before := programOf(w.thread)
		var s proc.Sample
		if s, err = w.sampler.Sample(); errors.Is(err, proc.ErrNoProcess) && proc.LivingThread(w.pid) != 0 {
			w.sampler.Close()
			if err = w.open(); err != nil {
				return r, err
			}
			continue
		}
		if err != nil {
			return r, err
		}
		r = reading{s.RSSBytes, programOf(w.thread)}
		if r.program == before {
			break
		}
	}
	return r, err
}

// programOf is a mark of the program that a process runs; empty if it ends.
func programOf(pid int) string {
	mark, err := proc.Program(pid)
	if errors.Is(err, proc.ErrNoProcess) {
		if thread := proc.LivingThread(pid); thread != 0 {
			mark, _ = proc.Program(thread) // it ended meanwhile
		}
	}
	return mark
}

func watch(ctx context.Context, d time.Duration, program string, read func() (reading, error)) (*Growth, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	ticker := time.NewTicker(growthEvery)
	defer ticker.Stop()
	var g Growth
	var line slope
	start := time.Now()
	for {
		r, err := read()
		if errors.Is(err, proc.ErrNoProcess) && g.Samples > 0 {
			g.Ended = true
			break
		}
		if err != nil {
			return nil, err
		}
		if r.program != "" && r.program != program {
			if program != "" { // what came before was of another program
				g, line, start = Growth{Execs: g.Execs + 1}, slope{}, time.Now()
			}
			program = r.program
		}
		g.Seconds = time.Since(start).Seconds()
		g.add(r.rss)
		line.add(g.Seconds, float64(r.rss))
		select {
		case <-ticker.C:
			continue
		case <-ctx.Done():
		}
		break
	}
	g.BytesPerHour = line.value() * 3600
	return &g, nil
}

func (g *Growth) add(rss uint64) {
	if g.Samples == 0 {
		g.FirstRSSBytes, g.MinRSSBytes = rss, rss
	}
	g.Samples++
	g.LastRSSBytes = rss
	g.MinRSSBytes, g.MaxRSSBytes = min(g.MinRSSBytes, rss), max(g.MaxRSSBytes, rss)
}

// slope is that of the line of least squares, summed up as samples come.
type slope struct {
	n, meanX, meanY, xx, xy float64
}

func (s *slope) add(x, y float64) {
	s.n++
	dx := x - s.meanX
	s.meanX += dx / s.n
	s.meanY += (y - s.meanY) / s.n
	s.xx += dx * (x - s.meanX)
	s.xy += dx * (y - s.meanY)
}

func (s *slope) value() float64 {
	if s.xx == 0 {
		return 0
	}
	return s.xy / s.xx
}
