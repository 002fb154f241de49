package watch

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/hub/hubtest"
	"github.com/ashlar-mem/ashlar/internal/watch/watchtest"
)

// These make the test binary a server, until its input ends or it is killed.
const (
	watchVariable = "ASHLAR_WATCH_CHILD" // a folder, with the socket w.sock
	hubVariable   = "ASHLAR_HUB_CHILD"   // a folder; the port is in hubPort
	hubPort       = "ASHLAR_HUB_PORT"
)

// long is what make fleet-faults sets.
var long = flag.Bool("long", false, "longer faults")

func TestMain(m *testing.M) {
	err := error(nil)
	switch {
	case os.Getenv(watchVariable) != "":
		err = serveWatch(os.Getenv(watchVariable))
	case os.Getenv(hubVariable) != "":
		err = serveHub(os.Getenv(hubVariable), os.Getenv(hubPort))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveWatch(dir string) error {
	ctx := context.Background()
	h, err := hub.Open(ctx, hub.Options{Dir: dir})
	if err != nil {
		return err
	}
	rules, err := ParseRules(DefaultRules)
	if err != nil {
		return err
	}
	s, err := NewServer(ctx, h, Options{Keep: 24 * time.Hour, MaxDisk: 1 << 30, Rules: rules})
	if err != nil {
		return err
	}
	l, err := Listen("unix:" + filepath.Join(dir, "w.sock"))
	if err != nil {
		return err
	}
	go s.Run(ctx)
	fmt.Println("ready")
	return Serve(ctx, l, s.Handler())
}

func serveHub(dir, port string) error {
	var n int
	if _, err := fmt.Sscan(port, &n); err != nil {
		return err
	}
	url, _, err := hubtest.Serve(dir, n)
	if err != nil {
		return err
	}
	fmt.Println(url)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startChild starts this binary as a server, and returns its first line.
func startChild(t *testing.T, environ ...string) (cmd *exec.Cmd, line string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), environ...)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killChild(cmd) })
	if _, err := fmt.Fscanln(out, &line); err != nil {
		t.Fatal(err)
	}
	return cmd, line
}

func killChild(cmd *exec.Cmd) {
	cmd.Process.Kill() // it may have ended
	cmd.Wait()
}

// A server is killed three times while jobs send: every sample is stored, once.
func TestKilledServer(t *testing.T) {
	const senders, each, kills = 25, 150, 3
	dir := t.TempDir()
	child, _ := startChild(t, watchVariable+"="+dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	sent := make(chan struct{}, senders*each)
	for rank := range senders {
		all.Go(func() {
			s := watchtest.NewSender(filepath.Join(dir, "w.sock"), "job", rank)
			defer s.Close()
			for range each {
				s.Sample(time.Now())
				s.Send(ctx) // what is not stored is sent again
				sent <- struct{}{}
			}
			if err := s.Flush(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for range kills {
		for range senders * each / (kills + 1) {
			<-sent
		}
		killChild(child)
		child, _ = startChild(t, watchVariable+"="+dir)
	}
	all.Wait()
	killChild(child)
	st, err := openStore(t.Context(), newTestHub(t, dir), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range senders {
		checkSeqs(t, st, fmt.Sprintf("job-rank%05d", rank), each)
	}
}

// A forwarder whose hub is killed, and comes back later: the hub has everything,
// and nothing twice.
func TestForward(t *testing.T) {
	c, local := newClock(), newTestHub(t, t.TempDir())
	s := newTestServer(t, local, c, "oom: num_ooms > 0 -> log")
	far := t.TempDir()
	child, url := startChild(t, hubVariable+"="+far, hubPort+"=0")
	var port int
	if _, err := fmt.Sscanf(url, "nats://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	f := &forwarder{from: s, open: func(ctx context.Context) (*hub.Hub, error) { return hub.Open(ctx, hub.Options{URL: url}) }}
	defer f.reset()
	send := func(from, to int) {
		for i := from; i <= to; i += 20 {
			call(t, s, "/v1/samples", batch(c, testSession, i, min(i+19, to)))
		}
	}
	round := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		err := f.round(ctx)
		if err != nil {
			f.reset()
		}
		return err
	}
	hello(t, s, testSession, 0)
	for _, to := range []int{40, 100, 160} { // the last makes a block
		send(to-59, to)
		if err := round(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	killChild(child)
	send(161, 500)
	if round(time.Second) == nil {
		t.Error("a hub that was killed takes samples")
	}
	startChild(t, hubVariable+"="+far, hubPort+"="+fmt.Sprint(port))
	send(501, 700)
	for range 2 { // the second has nothing to do
		if err := round(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	bad := sampleOf(c, 701)
	bad["num_ooms"] = 1
	call(t, s, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{bad}})
	if err := round(time.Minute); err != nil {
		t.Fatal(err)
	}
	checkSeqs(t, s.store, testSession, 701)
	checkSeqs(t, f.to, testSession, 701)
	there := newTestServer(t, f.hub, c, "")
	there.Load(t.Context(), time.Hour)
	if st := there.Status(); len(st.Runs) != 1 || len(st.Alarms) != 1 || *st.Runs[0].Step != 350 {
		t.Errorf("at the hub: %+v", st)
	}
}

// A forwarder loses its network, first with a word and then without: the hub has
// everything afterwards, and nothing twice.
func TestForwardCut(t *testing.T) {
	cut := 500 * time.Millisecond
	if *long {
		cut = 30 * time.Second
	}
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "")
	url, stop, err := hubtest.Serve(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	far, err := hub.Open(t.Context(), hub.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(far.Close)
	there, err := openStore(t.Context(), far, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p := hubtest.NewProxy(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		s.Forward(ctx, func(ctx context.Context) (*hub.Hub, error) { return hub.Open(ctx, hub.Options{URL: p.URL()}) })
	})
	hello(t, s, testSession, 0)
	const n, step = 600, 20
	for i := 1; i <= n; i += step {
		call(t, s, "/v1/samples", batch(c, testSession, i, i+step-1))
		switch i {
		case n/3 + 1:
			all.Go(func() { p.Cut(cut) })
		case 2*n/3 + 1:
			p.Hold(cut)
		}
	}
	for {
		tail, err := there.readTail(ctx, testSession)
		if err == nil && tail.through >= n {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	all.Wait()
	checkSeqs(t, s.store, testSession, n)
	checkSeqs(t, there, testSession, n)
}
