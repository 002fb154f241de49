package watch

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"
)

// Process is a process that holds memory of a GPU, as the driver sees it.
type Process struct {
	PID  int
	Name string
	// Started distinguishes processes that had one number after the other.
	Started int64
	GPU     Device
	Used    int64 // bytes of the device, the context included
	Free    int64 // bytes of the device that nobody has
}

// Outside are the processes that say nothing of themselves.
type outside struct {
	server *Server
	host   string
	seen   map[string]time.Time // when each was first seen
	on     map[string]bool      // those that are watched
	failed string               // why nothing could be listed, the last time
}

// A process that says hello at once needs no guess.
const outsideAfter = 5 * time.Second

// WatchProcesses samples the processes of this machine's GPUs that do not send
// themselves, each second until the context ends. list asks the driver.
func (s *Server) WatchProcesses(ctx context.Context, host string, list func() ([]Process, error)) {
	o := &outside{server: s, host: host, seen: map[string]time.Time{}, on: map[string]bool{}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		o.round(ctx, list)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// round takes a sample of each process, and ends those that are gone.
func (o *outside) round(ctx context.Context, list func() ([]Process, error)) {
	s := o.server
	all, err := list()
	if err != nil {
		if text := err.Error(); text != o.failed {
			o.failed = text
			s.opts.Log("processes that do not call ashlar.watch() are not seen: " + text)
		}
		return
	}
	o.failed = ""
	now := s.opts.Now()
	sends := s.senders(o.host)
	groups := map[string][]Process{}
	for _, p := range all {
		if !sends[p.PID] {
			id := o.session(p)
			groups[id] = append(groups[id], p)
		}
	}
	for id := range o.seen {
		if groups[id] == nil {
			if o.on[id] {
				o.end(ctx, id)
			}
			delete(o.seen, id)
			delete(o.on, id)
		}
	}
	for id, gpus := range groups {
		if _, known := o.seen[id]; !known {
			o.seen[id] = now
		}
		if now.Sub(o.seen[id]) < outsideAfter && !o.on[id] {
			continue
		}
		if err := o.sample(ctx, id, gpus, now); err != nil && ctx.Err() == nil {
			s.opts.Log(fmt.Sprintf("a sample of process %d is not stored: %v", gpus[0].PID, err))
		}
	}
}

// senders lists the processes of a host that send themselves.
func (s *Server) senders(host string) map[int]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[int]bool{}
	for _, one := range s.sessions {
		if h := &one.hello; h.source() == FromJob && h.Host == host && !h.Ended {
			all[h.PID] = true
		}
	}
	return all
}

// session names a process.
func (o *outside) session(p Process) string {
	host := fnv.New32a()
	host.Write([]byte(o.host)) // never fails
	return fmt.Sprintf("nvml-%08x-%d-%d", host.Sum32(), p.PID, p.Started)
}

// sample stores what a process holds on each GPU.
func (o *outside) sample(ctx context.Context, id string, gpus []Process, now time.Time) error {
	s := o.server
	if !o.on[id] {
		p := gpus[0]
		h := Hello{V: Version, Session: id, Run: p.Name, Host: o.host, PID: p.PID, Source: FromNVML}
		for _, p := range gpus {
			h.Devices = append(h.Devices, p.GPU)
		}
		if err := h.check(); err != nil {
			return err
		}
		if _, err := s.greet(ctx, h); err != nil {
			return err
		}
		o.on[id] = true
	}
	one, err := s.session(ctx, id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	seq := one.stored + 1
	s.mu.Unlock()
	body := samples{V: Version, Session: id}
	for _, p := range gpus {
		sample := map[string]*float64{}
		for name, v := range map[string]int64{
			"gpu": int64(p.GPU.Index), "seq": seq, "time_us": now.UnixMicro(), "reserved": p.Used, "device_free": p.Free, "device_total": p.GPU.Total,
		} {
			f := float64(v)
			sample[name] = &f
		}
		body.Samples = append(body.Samples, sample)
	}
	_, err = s.add(ctx, body)
	return err
}

func (o *outside) end(ctx context.Context, id string) {
	if _, err := o.server.add(ctx, samples{V: Version, Session: id, End: true}); err != nil && ctx.Err() == nil {
		o.server.opts.Log(fmt.Sprintf("the end of %s is not stored: %v", id, err))
	}
}
