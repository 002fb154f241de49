package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/watch"
	"github.com/ashlar-mem/ashlar/internal/watch/watchtest"
)

// The history of a week is made for a few jobs; that of jobs is as many times as
// large.
const jobs = 200

// fastClock goes when it is told to.
type fastClock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *fastClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *fastClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// week sends a week of samples of n jobs with a fast clock, and measures the
// folder and the curves.
func week(ctx context.Context, n int) ([]bar, error) {
	dir, err := os.MkdirTemp("", "watchload-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	h, err := hub.Open(ctx, hub.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	clock := &fastClock{t: time.Unix(1_800_000_000, 0)}
	s, err := watch.NewServer(ctx, h, watch.Options{Keep: 7 * 24 * time.Hour, MaxDisk: 1 << 40, Now: clock.now})
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "w.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go watch.Serve(ctx, l, s.Handler()) // it ends with the context
	var senders []*watchtest.Sender
	for i := range n {
		senders = append(senders, watchtest.NewSender(socket, "week", i))
	}
	begin := clock.now()
	for clock.now().Sub(begin) < 7*24*time.Hour {
		for range 120 {
			for _, one := range senders {
				one.Sample(clock.now())
			}
			clock.add(time.Second)
		}
		for _, one := range senders {
			if err := one.Send(ctx); err != nil {
				return nil, err
			}
		}
	}
	bytes := int64(0)
	err = filepath.WalkDir(filepath.Join(dir, "store"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slowest, again := 0.0, 0.0
	before := processTime()
	asked := 0
	for _, back := range []time.Duration{time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		for i, one := range senders {
			began := time.Now()
			if _, err := s.Curve(ctx, one.Session, i%8, "allocated", clock.now().Add(-back), clock.now(), 1000); err != nil {
				return nil, err
			}
			slowest = max(slowest, time.Since(began).Seconds())
			asked++
			began = time.Now()
			if _, err := s.Curve(ctx, one.Session, i%8, "allocated", clock.now().Add(-back), clock.now(), 1000); err != nil {
				return nil, err
			}
			again = max(again, time.Since(began).Seconds())
			asked++
		}
	}
	return []bar{
		{fmt.Sprintf("7 days of %d jobs, from %d of them", jobs, n), float64(bytes) / float64(n) * jobs / (1 << 20), 1024, "MiB"},
		{"the slowest curve of any range", slowest * 1000, 250, "ms"},
		{"the slowest curve that is asked for again", again * 1000, 250, "ms"},
		{"CPU time of a curve, on average", (processTime() - before) * 1000 / float64(asked), 250, "ms"},
	}, nil
}

// processTime is the CPU time of this process, in seconds.
func processTime() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
