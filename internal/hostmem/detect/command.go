package detect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// Options say how a command is looked into.
type Options struct {
	// Settle is how long the command must have run the same program: a
	// script that starts another by exec is not what is asked about.
	Settle time.Duration
	// For is how long its memory is watched then.
	For time.Duration
}

// Exit says how a command ended that was not ended by us.
type Exit struct {
	Seconds float64 `json:"after_s"`
	Status  *int    `json:"status"` // nil if a signal ended it
	Signal  *string `json:"signal"` // nil if none did
	// Said is the last line of its standard error.
	Said string `json:"said"`
}

// endGrace is how long a command may take to end when asked to.
const endGrace = 2 * time.Second

// Command starts a command, waits until it is up, looks into it and ends it,
// with everything it has started. One that ends sooner is looked into when it
// is about to. Standard input is empty, what the command prints is dropped.
func Command(ctx context.Context, argv []string, o Options) (*Result, error) {
	if len(argv) == 0 {
		return nil, errors.New("there is no command")
	}
	c, err := startChild(argv)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	r, err := c.lookWhenUp(ctx, o.Settle)
	if err != nil {
		return nil, err
	}
	if r.Exit == nil && o.For > 0 {
		watching, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-c.exiting:
				cancel()
			case <-watching.Done():
			}
		}()
		if r, err = r.watch(watching, o.For); err != nil {
			return nil, err
		}
		if c.isExiting() && ctx.Err() == nil {
			r.Exit = c.exit()
			r.Growth.Ended = r.Exit != nil
		}
	}
	return r, nil
}

const commandPoll = 10 * time.Millisecond

// lookWhenUp looks into the command once it has run the same program long
// enough, or holds it at its end and looks then.
func (c *child) lookWhenUp(ctx context.Context, settle time.Duration) (*Result, error) {
	program, since := "", time.Now()
	execs := int64(-1)
	for time.Since(since) < settle || program == "" {
		select {
		case <-c.exiting:
			r, err := Process(c.pid)
			if err != nil {
				return nil, c.endedTooSoon(err)
			}
			r.Exit = c.exit()
			return r, nil
		case <-c.done:
			return nil, c.endedTooSoon(proc.ErrNoProcess)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(commandPoll):
		}
		now, _, err := proc.Executable(c.pid)
		if err != nil {
			continue // it ended: the next turn says so
		}
		if n := c.execs.Load(); now != program || n != execs {
			program, execs, since = now, n, time.Now()
		}
	}
	r, err := Process(c.pid)
	if errors.Is(err, proc.ErrNoProcess) {
		return nil, c.endedTooSoon(err)
	}
	return r, err
}

// endedTooSoon describes the end of a command that could not be inspected.
func (c *child) endedTooSoon(err error) error {
	if !errors.Is(err, proc.ErrNoProcess) {
		return err
	}
	how := ""
	if e := c.exit(); e != nil {
		how = fmt.Sprintf(" after %.2f s (%s)", e.Seconds, e.Text())
	}
	return fmt.Errorf("the command ended%s, before it could be looked into: give one that runs longer", how)
}

// Text says how the command ended in a few words.
func (e *Exit) Text() string {
	if e.Status == nil {
		if e.Signal == nil {
			return "how is not known"
		}
		return "signal: " + *e.Signal
	}
	text := fmt.Sprintf("exit status %d", *e.Status)
	if *e.Status != 0 && e.Said != "" {
		text += ", " + e.Said
	}
	return text
}

// exit lets a command go that is held at its end, and says how it ended. It is
// nil if only the first thread has ended and others go on.
func (c *child) exit() *Exit {
	c.letGo()
	select {
	case <-c.done:
	case <-time.After(endGrace):
		return nil
	}
	e := &Exit{Seconds: c.ended.Sub(c.started).Seconds(), Said: c.said()}
	switch {
	case c.status.Exited():
		n := c.status.ExitStatus()
		e.Status = &n
	case c.status.Signaled():
		name := c.status.Signal().String()
		e.Signal = &name
	}
	return e
}

// said is the last line on standard error.
func (c *child) said() string {
	const most = 4096
	info, err := c.stderr.Stat()
	if err != nil {
		return ""
	}
	size := min(info.Size(), most)
	buf := make([]byte, size)
	n, _ := c.stderr.ReadAt(buf, info.Size()-size) // what there is
	lines := strings.Split(strings.TrimSpace(string(buf[:n])), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// stop ends the command and everything it has started, and waits until all of it
// is gone.
func (c *child) stop() {
	defer c.stderr.Close()
	c.letGo()
	for _, round := range []struct {
		signal syscall.Signal
		within time.Duration
	}{{syscall.SIGTERM, endGrace}, {syscall.SIGKILL, killedWithin}} {
		asked := map[int]bool{} // new ones may come while others go
		pause := commandPoll
		for wait := time.Now().Add(round.within); time.Now().Before(wait); time.Sleep(pause) {
			left := c.running()
			if c.isDone() && len(left) == 0 {
				return
			}
			for _, pid := range left {
				if !asked[pid] {
					asked[pid] = true
					end(pid, round.signal)
				}
			}
			pause = min(2*pause, 10*commandPoll)
		}
	}
}

// killedWithin is how long processes may take to be gone after SIGKILL.
const killedWithin = 5 * time.Second

// markName is the variable by which the descendants of a command are known, even
// if they have left its process group and were left by their parents.
const markName = "ASHLAR_HOST_DETECT"

// running lists the processes that belong to the command.
func (c *child) running() []int {
	var pids []int
	for _, s := range proc.All() {
		if s.Ended() {
			continue
		}
		if s.Group != c.pid {
			env, err := proc.Environ(s.PID)
			if err != nil || !slices.Contains(env, c.mark) {
				continue
			}
		}
		pids = append(pids, s.PID)
	}
	return pids
}

func newMark() string {
	return fmt.Sprintf("%s=%d.%d", markName, os.Getpid(), time.Now().UnixNano())
}
