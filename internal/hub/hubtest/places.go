package hubtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Place is where the store of a test is: in a folder, or at a URL.
type Place struct{ Dir, URL string }

// EachPlace runs a test in a folder, on three servers, and on an unmodified
// nats-server, all at once; under -short in a folder alone. All tests of a process
// share the servers, where each has an account of its own. Whoever calls it calls
// [Stop] at the end.
func EachPlace(t *testing.T, f func(t *testing.T, p Place)) {
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		f(t, Place{Dir: t.TempDir()})
	})
	if testing.Short() {
		return
	}
	t.Run("three servers", func(t *testing.T) {
		t.Parallel()
		f(t, Place{URL: three.account(t)})
	})
	t.Run("nats-server", func(t *testing.T) {
		t.Parallel()
		Program(t)
		f(t, Place{URL: unmodified.account(t)})
	})
}

// Stop ends what the tests of this process shared.
func Stop() {
	three.stop()
	unmodified.stop()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
}

// accounts is how many tests may share servers.
const accounts = 100

// shared are servers with an account for each test.
type shared struct {
	start func(ports []int, dir string) (stop func(), err error)
	nodes int

	mu    sync.Mutex
	ports []int
	err   error
	used  int
	stops []func()
}

var (
	three      = &shared{start: startThree, nodes: 3}
	unmodified = &shared{start: startUnmodified, nodes: 1}
)

// account returns the URL of an account that nobody uses.
func (s *shared) account(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ports == nil && s.err == nil {
		s.err = s.begin()
	}
	if s.used == accounts {
		s.err = errors.New("there are no accounts left")
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	var urls []string
	for _, port := range s.ports[:s.nodes] {
		urls = append(urls, fmt.Sprintf("nats://t%d:secret@127.0.0.1:%d", s.used, port))
	}
	s.used++
	return strings.Join(urls, ",")
}

func (s *shared) begin() error {
	dir, err := os.MkdirTemp("", "hubtest")
	if err != nil {
		return err
	}
	s.stops = append(s.stops, func() { os.RemoveAll(dir) })
	if s.ports, err = FreePorts(2 * s.nodes); err != nil {
		return err
	}
	stop, err := s.start(s.ports, dir)
	if stop != nil {
		s.stops = append(s.stops, stop)
	}
	return err
}

func (s *shared) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.stops) > 0 {
		s.stops[len(s.stops)-1]()
		s.stops = s.stops[:len(s.stops)-1]
	}
}

// writeConfig writes the configuration of a server, as its users would.
func writeConfig(n *Node) (path string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: %s\nlisten: 127.0.0.1:%d\njetstream { store_dir: '%s', sync_interval: 1s }\n", n.Name, n.Port, n.Dir)
	if len(n.Routes) > 0 {
		fmt.Fprintf(&b, "cluster { name: fleet, listen: 127.0.0.1:%d, routes: [", n.Route)
		for _, r := range n.Routes {
			fmt.Fprintf(&b, "nats://127.0.0.1:%d, ", r)
		}
		b.WriteString("] }\n")
	}
	b.WriteString("accounts {\n")
	for i := range accounts {
		fmt.Fprintf(&b, "  T%d { jetstream: enabled, users: [ { user: t%d, password: secret } ] }\n", i, i)
	}
	b.WriteString("}\n")
	path = n.Dir + ".conf"
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

// startThree serves from this process, and waits for a leader.
func startThree(ports []int, dir string) (stop func(), err error) {
	var nodes []*server.Server
	stop = func() {
		for _, s := range nodes {
			s.Shutdown()
		}
		for _, s := range nodes {
			s.WaitForShutdown()
		}
	}
	for i := range 3 {
		name := fmt.Sprintf("node%d", i)
		path, err := writeConfig(&Node{Name: name, Dir: filepath.Join(dir, name), Port: ports[i], Route: ports[3+i], Routes: ports[3:]})
		if err != nil {
			return stop, err
		}
		o, err := server.ProcessConfigFile(path)
		if err != nil {
			return stop, err
		}
		o.NoLog, o.NoSigs = true, true
		s, err := server.NewServer(o)
		if err != nil {
			return stop, err
		}
		s.Start()
		nodes = append(nodes, s)
	}
	for range 600 {
		for _, s := range nodes {
			if s.JetStreamIsLeader() {
				return stop, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return stop, errors.New("three servers do not agree on a leader within a minute")
}

// builtIn is where a nats-server was built.
var builtIn string

// program builds the server that go.mod names, once.
var program = sync.OnceValues(func() (path string, err error) {
	if path = os.Getenv("ASHLAR_NATS_SERVER"); path != "" {
		return path, nil
	}
	if builtIn, err = os.MkdirTemp("", "nats-server"); err != nil {
		return "", err
	}
	path = filepath.Join(builtIn, "nats-server.exe") // Windows wants the ending
	if out, err := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build of nats-server: %w: %s", err, out)
	}
	return path, nil
})

// Program returns an unmodified nats-server: the one that $ASHLAR_NATS_SERVER
// names, else one that is built from the module that this one depends on. The
// test is skipped if there is none.
func Program(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Skipf("no nats-server can be had: %v", err)
	}
	return path
}

func startUnmodified(ports []int, dir string) (stop func(), err error) {
	path, err := program()
	if err != nil {
		return nil, err
	}
	config, err := writeConfig(&Node{Name: "one", Dir: filepath.Join(dir, "one"), Port: ports[0]})
	if err != nil {
		return nil, err
	}
	return StartProgram(path, ports[0], "-c", config)
}

// StartProgram starts a nats-server, and returns when it listens at a port. stop
// is kill -9.
func StartProgram(path string, port int, args ...string) (stop func(), err error) {
	cmd := exec.Command(path, args...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait() // how it ended is not asked
	}()
	stop = func() {
		cmd.Process.Kill()
		<-ended
	}
	for range 1200 {
		if listens(port) {
			return stop, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("%v ended at once", cmd.Args)
		case <-time.After(50 * time.Millisecond):
		}
	}
	stop()
	return nil, fmt.Errorf("%v does not listen within a minute", cmd.Args)
}
