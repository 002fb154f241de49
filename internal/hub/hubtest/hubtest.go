package hubtest

import (
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Serve serves a folder on a port of this machine, 0 for one that is free, and
// returns its URL and what ends it.
func Serve(dir string, port int) (url string, stop func(), err error) {
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true, JetStream: true, StoreDir: dir, SyncInterval: time.Second})
	if err != nil {
		return "", nil, err
	}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		s.Shutdown()
		return "", nil, fmt.Errorf("the server in %s does not start", dir)
	}
	return s.ClientURL(), func() { s.Shutdown(); s.WaitForShutdown() }, nil
}
