package fleet

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A file is analysed by a process of its own kind: it has no connection to the
// store, and if it dies or is killed, its parent lives. The processes speak gob
// over standard input and output.

// task is what a child is asked to do: to analyse a file, or to try a batch of
// settings on it. Path is empty if it has that file already.
type task struct {
	Path, Name string
	Hash       string
	Batch      []byte // nil for an analysis
}

// reply is an analysis on its way. The row is JSON: gob takes a pointer to 0 for
// none.
type reply struct {
	Documents map[string]Document
	Row       []byte
	Trials    []byte // JSON, too
}

// RunChild answers tasks until standard input ends.
func RunChild(ctx context.Context, in io.Reader, out io.Writer) error {
	return runChild(ctx, in, out, Analyse)
}

func runChild(ctx context.Context, in io.Reader, out io.Writer, analyse func(ctx context.Context, path, name string) (*Analysis, error)) error {
	tasks, replies := gob.NewDecoder(in), gob.NewEncoder(out)
	var settings tuner
	for {
		var t task
		if err := tasks.Decode(&t); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var r reply
		var err error
		if t.Batch != nil {
			r.Trials, err = json.Marshal(settings.try(ctx, &t))
		} else {
			settings = tuner{} // its memory is needed now
			var a *Analysis
			if a, err = analyse(ctx, t.Path, t.Name); err == nil {
				r.Documents = a.Documents
				r.Row, err = json.Marshal(a.Row)
			}
		}
		if err == nil {
			err = replies.Encode(r)
		}
		if err != nil {
			return err
		}
	}
}

// childOptions say how a child is started and what it may take.
type childOptions struct {
	command   []string // the program and its arguments
	env       []string
	maxMemory uint64 // 0: no limit
	maxTime   time.Duration
}

// child is a process that analyses files.
type child struct {
	options childOptions
	cmd     *exec.Cmd
	in      io.WriteCloser
	tasks   *gob.Encoder
	replies *gob.Decoder
	said    *tail
	loaded  string // the hash of the file that it tries settings on
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > tailBytes {
		t.text = t.text[len(t.text)-tailBytes:]
	}
	return len(p), nil
}

// firstLine returns the line that says why a Go program ended.
func (t *tail) firstLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(string(t.text)) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

func startChild(o childOptions) (*child, error) {
	c := &child{options: o, cmd: exec.Command(o.command[0], o.command[1:]...), said: &tail{}}
	c.cmd.Env = append(os.Environ(), o.env...)
	c.cmd.Stderr = c.said
	ownGroup(c.cmd)
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	firstToGo(c.cmd.Process.Pid)
	c.tasks, c.replies = gob.NewEncoder(c.in), gob.NewDecoder(bufio.NewReaderSize(out, 1<<18))
	return c, nil
}

// end stops the child. It may be called more than once.
func (c *child) end() error {
	c.in.Close()
	c.cmd.Process.Kill() // it has nothing to lose
	return c.cmd.Wait()
}

// strike is why a file was the end of its worker.
type strike struct{ error }

// analyse has the child analyse a file.
func (c *child) analyse(ctx context.Context, t task) (*Analysis, error) {
	c.loaded = ""
	r, err := c.ask(ctx, t)
	if err != nil {
		return nil, err
	}
	a := &Analysis{Documents: r.Documents}
	return a, json.Unmarshal(r.Row, &a.Row)
}

// ask has the child do a task. The error is a *[strike] if the child died or had
// to be killed; in any case it is useless then.
func (c *child) ask(ctx context.Context, t task) (*reply, error) {
	type outcome struct {
		r   *reply
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r := new(reply)
		err := c.tasks.Encode(t)
		if err == nil {
			err = c.replies.Decode(r)
		}
		done <- outcome{r, err}
	}()
	late := time.NewTimer(c.options.maxTime)
	defer late.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case o := <-done:
			if o.err != nil {
				return nil, &strike{c.died()}
			}
			return o.r, nil
		case <-ctx.Done():
			c.end()
			return nil, context.Cause(ctx)
		case <-late.C:
			c.end()
			return nil, &strike{fmt.Errorf("it took longer than %v", c.options.maxTime)}
		case <-look.C:
			if most := c.options.maxMemory; most > 0 && residentBytes(c.cmd.Process.Pid) > most {
				c.end()
				return nil, &strike{fmt.Errorf("it took more than %d MiB of memory", most>>20)}
			}
		}
	}
}

// died says how the child ended.
func (c *child) died() error {
	err := c.end()
	said := c.said.firstLine()
	switch {
	case err == nil:
		return errors.New("its worker ended")
	case said != "":
		return fmt.Errorf("its worker died: %w: %s", err, said)
	}
	return fmt.Errorf("its worker died: %w", err)
}
