package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/watch"
	"github.com/ashlar-mem/ashlar/internal/watch/watchtest"
)

// load is many jobs that send a sample each second.
type load struct {
	ashlar      string
	senders     int
	lasts       time.Duration
	kills       int
	cpu, memory float64 // bars: percent of a core, MB
}

// server is ashlar watch as a process.
type server struct {
	cmd    *exec.Cmd
	socket string
}

func startServer(ashlar, dir string) (*server, error) {
	s := &server{socket: filepath.Join(dir, "w.sock")}
	s.cmd = exec.Command(ashlar, "watch", "--dir", filepath.Join(dir, "store"), "--listen", "unix:"+s.socket)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	}}}
	defer client.CloseIdleConnections()
	for range 3000 {
		if answer, err := client.Get("http://localhost/v1/state"); err == nil {
			return s, answer.Body.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, fmt.Errorf("%s does not answer", s.socket)
}

// kill ends the process with SIGKILL, and returns what it used: seconds of CPU
// time, and the most bytes it had.
func (s *server) kill() (cpu, memory float64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)) // what is not known is 0
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			kib, _ := strconv.ParseFloat(f[1], 64)
			memory = kib * 1024
		}
	}
	s.cmd.Process.Kill()
	s.cmd.Wait() // its error is the signal
	return (s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()).Seconds(), memory
}

func (l *load) run(ctx context.Context) ([]bar, error) {
	dir, err := os.MkdirTemp("", "watchload-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := startServer(l.ashlar, dir)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(l.lasts)
	senders := make([]*watchtest.Sender, l.senders)
	failed := make(chan error, l.senders)
	var all sync.WaitGroup
	for i := range senders {
		senders[i] = watchtest.NewSender(s.socket, "load", i)
		all.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / time.Duration(l.senders))
			for time.Now().Before(end) {
				senders[i].Sample(time.Now())
				senders[i].Send(ctx) // what is not stored is sent again
				time.Sleep(time.Second)
			}
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			failed <- senders[i].Flush(ctx)
			senders[i].Close()
		})
	}
	var cpu, memory, back float64
	for range l.kills {
		time.Sleep(l.lasts / time.Duration(l.kills+1))
		c, m := s.kill()
		cpu, memory = cpu+c, max(memory, m)
		began := time.Now()
		if s, err = startServer(l.ashlar, dir); err != nil {
			return nil, err
		}
		back = max(back, time.Since(began).Seconds())
	}
	all.Wait()
	close(failed)
	c, m := s.kill()
	for err := range failed {
		if err != nil {
			return nil, err
		}
	}
	name := fmt.Sprintf("%d jobs, %v", l.senders, l.lasts)
	bars := []bar{
		{name + ": CPU", 100 * (cpu + c) / l.lasts.Seconds(), l.cpu, "%"},
		{name + ": memory", max(memory, m) / 1e6, l.memory, "MB"},
	}
	if l.kills > 0 {
		bars = append(bars, bar{fmt.Sprintf("%s: back after each of %d kills", name, l.kills), back * 1000, 1000, "ms"})
	}
	wrong, err := l.verify(ctx, dir, senders)
	return append(bars, bar{name + ": samples lost or doubled", float64(wrong), 1, ""}), err
}

// verify counts the sequence numbers that are not stored exactly once.
func (l *load) verify(ctx context.Context, dir string, senders []*watchtest.Sender) (wrong int64, err error) {
	h, err := hub.Open(ctx, hub.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		return 0, err
	}
	defer h.Close()
	s, err := watch.NewServer(ctx, h, watch.Options{Keep: 7 * 24 * time.Hour})
	if err != nil {
		return 0, err
	}
	stored := map[string]map[int64]int{}
	err = s.History(ctx, "load", func(h *watch.Hello, last, _, _ watch.Row) error {
		if stored[h.Session] == nil {
			stored[h.Session] = map[int64]int{}
		}
		stored[h.Session][last.V[watch.Seq]]++
		return nil
	})
	for _, one := range senders {
		for seq := int64(1); seq <= one.Taken(); seq++ {
			if stored[one.Session][seq] != 1 {
				wrong++
			}
		}
	}
	return wrong, err
}
