package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/watch"
	"github.com/ashlar-mem/ashlar/internal/watch/watchtest"
)

// crowd makes the jobs that the page is measured with: most are processes of their
// own, every fifth eight belong to one run.
func crowd(socket string, n int) []*watchtest.Sender {
	var all []*watchtest.Sender
	for i := range n {
		group := i / 8
		run, rank, world := fmt.Sprintf("job%03d", i), 0, 1
		if group%5 == 1 {
			run, rank, world = fmt.Sprintf("run%03d", group), i%8, 8
		}
		one := watchtest.NewSender(socket, run, rank)
		one.World = world
		all = append(all, one)
	}
	return all
}

// fill makes a folder with some hours of history of many jobs, up to now.
func fill(ctx context.Context, dir string, jobs int, lasts time.Duration) error {
	h, err := hub.Open(ctx, hub.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer h.Close()
	clock := &fastClock{t: time.Now().Add(-lasts)}
	rules, err := watch.ParseRules(watch.DefaultRules)
	if err != nil {
		return err
	}
	s, err := watch.NewServer(ctx, h, watch.Options{Keep: 7 * 24 * time.Hour, MaxDisk: 1 << 40, Rules: rules, Now: clock.now})
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "watchload-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	socket := filepath.Join(temp, "w.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go watch.Serve(ctx, l, s.Handler()) // it ends with the context
	senders := crowd(socket, jobs)
	for now := time.Now(); clock.now().Before(now); {
		for range 120 {
			for _, one := range senders {
				one.Sample(clock.now())
			}
			clock.add(time.Second)
		}
		for _, one := range senders {
			if err := one.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendTo lets the same jobs go on, a sample each second.
func sendTo(ctx context.Context, socket string, jobs int, lasts time.Duration) {
	senders := crowd(socket, jobs)
	for _, one := range senders {
		one.Resume(ctx) // what cannot be reached is tried again
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(lasts); time.Now().Before(end); <-tick.C {
		for _, one := range senders {
			one.Sample(time.Now())
			one.Send(ctx) // what is not stored is sent again
		}
	}
}
