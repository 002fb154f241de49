//go:build linux

package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub/hubtest"
)

// serverVariable names an unmodified nats-server, which takes the place of the
// one that is linked into the tests.
const serverVariable = "ASHLAR_NATS_SERVER"

// startServer starts one server with a port.
func startServer(t *testing.T) (url string) {
	t.Helper()
	ports, err := hubtest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	url = fmt.Sprintf("nats://127.0.0.1:%d", ports[0])
	if program := os.Getenv(serverVariable); program != "" {
		cmd := exec.Command(program, "-js", "-a", "127.0.0.1", "-p", fmt.Sprint(ports[0]), "-sd", t.TempDir())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	} else {
		_, stop, err := hubtest.Serve(t.TempDir(), ports[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	awaitPort(t, ports[0])
	return url
}

func awaitPort(t *testing.T, port int) {
	t.Helper()
	for {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// startCluster starts three servers, each a process.
func startCluster(t *testing.T) (nodes map[string]*process, url string) {
	t.Helper()
	ports, err := hubtest.FreePorts(6)
	if err != nil {
		t.Fatal(err)
	}
	nodes = map[string]*process{}
	var urls []string
	for i := range 3 {
		n := hubtest.Node{Name: fmt.Sprintf("node%d", i), Dir: t.TempDir(), Port: ports[i], Route: ports[3+i], Routes: ports[3:]}
		text, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, "node", "-node", string(text))
		p.dir = n.Dir
		nodes[n.Name] = p
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", n.Port))
	}
	for _, port := range ports[:3] {
		awaitPort(t, port)
	}
	return nodes, strings.Join(urls, ",")
}

// proxy stands between a client and a server.
type proxy struct {
	t        *testing.T
	address  string
	to       string
	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

func newProxy(t *testing.T, url string) *proxy {
	t.Helper()
	p := &proxy{t: t, to: strings.TrimPrefix(url, "nats://"), address: "127.0.0.1:0"}
	p.listen()
	p.address = p.listener.Addr().String()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) url() string { return "nats://" + p.address }

func (p *proxy) listen() {
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Error(err)
		return
	}
	p.mu.Lock()
	p.listener = l
	p.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			s, err := net.Dial("tcp", p.to)
			if err != nil {
				c.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, c, s)
			p.mu.Unlock()
			for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
				go func() {
					io.Copy(way[0], way[1])
					way[0].Close()
				}()
			}
		}
	}()
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.Close()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// cut is no network for a while.
func (p *proxy) cut(d time.Duration) {
	p.close()
	time.Sleep(d)
	p.listen()
}
