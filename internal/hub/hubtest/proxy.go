package hubtest

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy stands between clients and a server, and can lose its network.
type Proxy struct {
	t        *testing.T
	address  string
	to       string
	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	held     sync.RWMutex // while nothing comes through
}

// NewProxy returns one for a server.
func NewProxy(t *testing.T, url string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, to: strings.TrimPrefix(url, "nats://"), address: "127.0.0.1:0"}
	p.listen()
	p.address = p.listener.Addr().String()
	t.Cleanup(p.close)
	return p
}

// URL is where clients reach the server through the proxy.
func (p *Proxy) URL() string { return "nats://" + p.address }

func (p *Proxy) listen() {
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
				go p.carry(way[0], way[1])
			}
		}
	}()
}

// carry carries bytes one way.
func (p *Proxy) carry(to io.WriteCloser, from io.Reader) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.held.RLock()
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		p.held.RUnlock()
		if err != nil {
			return
		}
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.Close()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// Hold lets nothing through for a while, and tells nobody.
func (p *Proxy) Hold(d time.Duration) {
	p.held.Lock()
	defer p.held.Unlock()
	time.Sleep(d)
}

// Cut ends all connections, and lets nobody in for a while.
func (p *Proxy) Cut(d time.Duration) {
	p.close()
	time.Sleep(d)
	p.listen()
}
