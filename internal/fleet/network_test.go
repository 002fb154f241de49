//go:build linux

package fleet

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/hub/hubtest"
)

// servers are what a fleet stands on; some of it can be killed and comes back.
type servers struct {
	options hub.Options
	restart func()
}

// startFolder starts the owner of a folder.
func startFolder(t *testing.T) *servers {
	o := hub.Options{Dir: t.TempDir()}
	return &servers{o, start(t, at(o, "hub")...).restart}
}

// startThree starts three servers, of which one after the other can be killed, and
// a process that looks after the fleet, which goes with it.
func startThree(t *testing.T) *servers {
	nodes, url := startCluster(t)
	o := hub.Options{URL: url}
	keeper := start(t, at(o, "hub")...)
	next := 0
	return &servers{o, func() {
		nodes[fmt.Sprintf("node%d", next%len(nodes))].restart()
		keeper.restart()
		next++
	}}
}

// startProgram starts an unmodified nats-server.
func startProgram(t *testing.T) *servers {
	t.Helper()
	program, dir := hubtest.Program(t), t.TempDir()
	ports, err := hubtest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	var stop func()
	begin := func() {
		var err error
		if stop, err = hubtest.StartProgram(program, ports[0], "-js", "-a", "127.0.0.1", "-p", fmt.Sprint(ports[0]), "-sd", dir); err != nil {
			t.Fatal(err)
		}
	}
	begin()
	t.Cleanup(func() { stop() })
	return &servers{hub.Options{URL: fmt.Sprintf("nats://127.0.0.1:%d", ports[0])}, func() {
		stop()
		begin()
	}}
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
