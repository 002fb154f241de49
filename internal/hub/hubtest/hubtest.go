package hubtest

import (
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Serve serves a folder on a port of this machine, 0 for one that is free, and
// returns its URL and what ends it.
func Serve(dir string, port int) (url string, stop func(), err error) {
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return serve(&server.Options{Host: "127.0.0.1", Port: port, StoreDir: dir})
}

// Node is one server of a cluster.
type Node struct {
	Name        string
	Dir         string
	Port, Route int   // for clients, and for the other servers
	Routes      []int // of all servers
}

// ServeNode is [Serve] for one server of a cluster.
func ServeNode(n Node) (address string, stop func(), err error) {
	o := &server.Options{
		ServerName: n.Name, Host: "127.0.0.1", Port: n.Port, StoreDir: n.Dir,
		Cluster: server.ClusterOpts{Name: "fleet", Host: "127.0.0.1", Port: n.Route},
	}
	for _, r := range n.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", r)})
	}
	return serve(o)
}

func serve(o *server.Options) (address string, stop func(), err error) {
	o.NoLog, o.NoSigs, o.JetStream, o.SyncInterval = true, true, true, time.Second
	s, err := server.NewServer(o)
	if err != nil {
		return "", nil, err
	}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		s.Shutdown()
		return "", nil, fmt.Errorf("the server in %s does not start", o.StoreDir)
	}
	return s.ClientURL(), func() { s.Shutdown(); s.WaitForShutdown() }, nil
}

// FreePorts returns ports that nobody listens at.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// listens reports whether a server listens at a port.
func listens(port int) bool {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		c.Close()
	}
	return err == nil
}
