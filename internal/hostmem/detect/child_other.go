//go:build !linux

package detect

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Other systems have no /proc to look into: nothing of this is reached.

type child struct {
	pid            int
	mark           string
	stderr         *os.File
	started, ended time.Time
	execs          atomic.Int64
	exiting, done  chan struct{}
	status         syscall.WaitStatus
}

func startChild([]string) (*child, error) {
	return nil, errors.New("processes can be looked into on Linux only")
}

func (c *child) letGo()          {}
func (c *child) isExiting() bool { return true }
func (c *child) isDone() bool    { return true }
