package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// The helper is a small process that starts the command. Linux counts the memory of
// a process from that of the one that started it on, and the attacker's is large.

// order asks the helper to run a command.
type order struct {
	Args           []string
	Env            []string
	Stdout, Stderr string // files
	Seconds        int    // of the processor
}

// outcome is how that ended.
type outcome struct {
	Code   int
	CPU    time.Duration
	Memory int64
	Failed string // to start
}

// helperFlag makes this program the helper.
const helperFlag = "-helper"

// help runs what it is asked to until there is nothing left to read.
func help(in io.Reader, out io.Writer) error {
	orders, outcomes := gob.NewDecoder(in), gob.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := outcomes.Encode(o.run()); err != nil {
			return err
		}
	}
}

// run runs the command. The limit is on the time of the processor, so that a busy
// machine changes nothing.
func (o *order) run() outcome {
	cmd := exec.Command("/bin/sh", append([]string{"-c", fmt.Sprintf(`ulimit -t %d; exec "$0" "$@"`, o.Seconds)}, o.Args...)...)
	cmd.Env = o.Env
	stdout, err := os.Create(o.Stdout)
	if err != nil {
		return outcome{Failed: err.Error()}
	}
	defer stdout.Close()
	stderr, err := os.Create(o.Stderr)
	if err != nil {
		return outcome{Failed: err.Error()}
	}
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return outcome{Failed: err.Error()}
	}
	s := cmd.ProcessState
	out := outcome{Code: s.ExitCode(), CPU: s.UserTime() + s.SystemTime()}
	if usage, ok := s.SysUsage().(*syscall.Rusage); ok {
		out.Memory = usage.Maxrss << 10
	}
	return out
}

// helper is the small process, seen from the large one.
type helper struct {
	orders   *gob.Encoder
	outcomes *gob.Decoder
}

func startHelper() (*helper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, helperFlag)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	return &helper{gob.NewEncoder(in), gob.NewDecoder(out)}, cmd.Start()
}

func (h *helper) run(o order) (outcome, error) {
	var out outcome
	if err := h.orders.Encode(o); err != nil {
		return out, err
	}
	if err := h.outcomes.Decode(&out); err != nil {
		return out, err
	}
	if out.Failed != "" {
		return out, errors.New(out.Failed)
	}
	return out, nil
}
