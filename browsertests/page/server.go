package page

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Server is a running ashlar view, or ashlar watch.
type Server struct {
	Address string // http://127.0.0.1:PORT/TOKEN/
	Started time.Time
	cmd     *exec.Cmd
	errors  *lockedBuffer
}

// Serve starts ashlar view on files and waits for the address that it prints.
func Serve(ashlar string, files ...string) (*Server, error) {
	return start(ashlar, append([]string{"view", "--no-open"}, files...)...)
}

// Watch starts ashlar watch with some flags, and waits for the address of its page.
func Watch(ashlar string, flags ...string) (*Server, error) {
	return startAtPlace(ashlar, append([]string{"watch"}, flags...)...)
}

// Fleet starts ashlar fleet serve with some flags, and waits for the address of its
// page.
func Fleet(ashlar string, flags ...string) (*Server, error) {
	return startAtPlace(ashlar, append([]string{"fleet", "serve", "--page"}, flags...)...)
}

// startAtPlace keeps the address without the place that the command opens.
func startAtPlace(ashlar string, args ...string) (*Server, error) {
	s, err := start(ashlar, args...)
	if err == nil {
		s.Address, _, _ = strings.Cut(s.Address, "#")
	}
	return s, err
}

func start(ashlar string, args ...string) (*Server, error) {
	cmd := exec.Command(ashlar, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := &Server{cmd: cmd, errors: new(lockedBuffer), Started: time.Now()}
	cmd.Stderr = s.errors
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, "http://127.0.0.1:") {
			s.Address = line
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return s, nil
		}
	}
	err = s.Close()
	return nil, errors.Join(fmt.Errorf("ashlar %s printed no address: %s", args[0], s.errors), err)
}

// PID is the process of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Close stops the server as Ctrl-C does.
func (s *Server) Close() error {
	_ = s.cmd.Process.Signal(os.Interrupt)
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		return errors.New("ashlar did not stop within 10 s")
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
