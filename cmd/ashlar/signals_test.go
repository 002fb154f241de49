//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// reading are the commands that read a FILE, written IN here. OUT is a folder.
var reading = [][]string{
	{"stats", "IN"},
	{"events", "IN"},
	{"explain", "IN"},
	{"whatif", "--set", "", "IN"},
	{"policies", "IN"},
	{"tune", "IN"},
	{"tenants", "--limit", "1GiB", "--tenant", "a=IN"},
	{"check", "--survives", "1GiB", "IN"},
	{"report", "-o", "OUT/report.html", "IN"},
	{"convert", "IN", "OUT/out.json"},
	{"gen", "IN", "OUT/out.pickle"},
	{"load", "IN"},
	{"verify", "IN"},
	{"diff", "IN", graphs},
	{"diff", graphs, "IN"},
	{"plan", "IN"},
	{"dry", "IN"},
	{"plan", "--weights", "IN", "../../testdata/plan/llama-1b.json"},
	{"view", "--no-open", "IN"},
}

// pipeName has plan read its --weights to the end.
const pipeName = "pipe.index.json"

// hangs is when a test gives up on a program.
const hangs = time.Minute

func inPlace(args []string, in, out string) []string {
	args = slices.Clone(args)
	for i, a := range args {
		if a == "IN" || strings.HasSuffix(a, "=IN") {
			args[i] = strings.TrimSuffix(a, "IN") + in
		}
		args[i] = strings.Replace(args[i], "OUT", out, 1)
	}
	return args
}

func mkfifo(t *testing.T, path string) string {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	return path
}

// interruptedAs is how a command ends that a signal, or nobody, has interrupted while
// it was reading: the page has nothing to complain about.
func interruptedAs(args []string, s os.Signal) (code int, said string) {
	if args[0] == "view" {
		return exitOK, ""
	}
	return exitInput, "ashlar: " + map[os.Signal]string{
		nil: "interrupted", os.Interrupt: "interrupted", syscall.SIGTERM: "interrupted by SIGTERM", syscall.SIGHUP: "interrupted by SIGHUP",
	}[s] + "\n"
}

// Every command is among those that read, or is known not to.
func TestReadingCommands(t *testing.T) {
	for _, c := range newRoot(stdio{}).Commands() {
		reads := slices.ContainsFunc(reading, func(args []string) bool { return args[0] == c.Name() })
		if reads == slices.Contains([]string{"host", "gpu", "version", "mcp", "watch", "fleet"}, c.Name()) {
			t.Errorf("does %s read files?", c.Name())
		}
	}
}

// Opening a pipe that nobody writes to does not keep a command from ending.
func TestInterruptedOpening(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	pipe := mkfifo(t, filepath.Join(dir, pipeName))
	for _, args := range reading {
		args = inPlace(args, pipe, dir)
		var stdout, stderr bytes.Buffer
		done := make(chan int, 1)
		go func() { done <- execute(ctx, stdio{out: &stdout, err: &stderr}, args) }()
		select {
		case code := <-done:
			if want, said := interruptedAs(args, nil); code != want || stderr.String() != said {
				t.Errorf("%q: status %d, stderr %q", args, code, &stderr)
			}
		case <-time.After(hangs):
			t.Fatalf("%q does not end", args)
		}
	}
}

// program is a real one that was started.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{}
}

func start(t *testing.T, stdin io.Reader, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command("ashlar", args...), ended: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stderr = stdin, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait() // ProcessState has it
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// hasOpenIn reports whether the program has a file of a folder open, which need not
// have a name.
func (p *program) hasOpenIn(dir string) bool {
	open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	return slices.ContainsFunc(open, func(fd string) bool {
		name, err := os.Readlink(fd)
		return err == nil && strings.HasPrefix(name, dir)
	})
}

// until waits for something that the program does.
func (p *program) until(what string, done func() bool) {
	p.t.Helper()
	for end := time.Now().Add(hangs); !done(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-p.ended:
			p.t.Fatalf("%q ended before %s: %v, %s", p.cmd.Args, what, p.cmd.ProcessState, &p.stderr)
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("%q: no %s", p.cmd.Args, what)
		}
	}
}

// ends sends signals and checks how the program ends. Of several it sees any first.
func (p *program) ends(args []string, signals ...os.Signal) {
	p.t.Helper()
	code, all := 0, []string{}
	for _, s := range signals {
		var said string
		code, said = interruptedAs(args, s)
		all = append(all, said)
	}
	for _, s := range signals {
		p.cmd.Process.Signal(s) // it may have ended at the first
	}
	select {
	case <-p.ended:
		if got := p.cmd.ProcessState.ExitCode(); got != code || !slices.Contains(all, p.stderr.String()) {
			p.t.Errorf("%q, %v: %v, stderr %q", p.cmd.Args, signals, p.cmd.ProcessState, &p.stderr)
		}
	case <-time.After(hangs):
		p.t.Errorf("%q does not end after %v", p.cmd.Args, signals)
	}
}

// A command that waits for input ends at the first signal.
func TestInterruptedReading(t *testing.T) {
	signals := endSignals()
	for i, args := range reading {
		dir := t.TempDir()
		pipe := mkfifo(t, filepath.Join(dir, pipeName))

		p := start(t, nil, inPlace(args, pipe, dir)...)
		p.until("opening the pipe", func() bool {
			w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err == nil {
				t.Cleanup(func() { w.Close() })
			}
			return err == nil
		})
		p.ends(args, signals[i%len(signals)])

		if slices.Contains(args, "--weights") {
			continue // is never standard input
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p = start(t, r, inPlace(args, "-", dir)...)
		r.Close()
		// More than fits into the pipe: when it is written, the command reads.
		if _, err := io.WriteString(w, "{"+strings.Repeat(" ", 1<<18)); err != nil {
			<-p.ended
			t.Errorf("%q: %v, %s", args, err, &p.stderr)
		}
		p.ends(args, signals[(i+1)%len(signals)])
		w.Close()
	}
}

// A command that is stuck ends all the same, at the second signal at once, and
// leaves no temporary file.
func TestInterruptedStuck(t *testing.T) {
	ways := [][]os.Signal{{os.Interrupt, syscall.SIGTERM}, {syscall.SIGTERM, os.Interrupt}}
	for _, s := range endSignals() {
		ways = append(ways, []os.Signal{s})
	}
	for _, signals := range ways {
		dir := t.TempDir()
		mkfifo(t, filepath.Join(dir, "out.stacks.parquet")) // nobody reads it
		p := start(t, nil, "convert", graphs, filepath.Join(dir, "out.parquet"))
		p.until("writing", func() bool { return len(leftIn(t, dir)) == 2 || p.hasOpenIn(dir) })
		p.ends([]string{"convert"}, signals...)
		if left := leftIn(t, dir); len(left) != 1 {
			t.Errorf("%v is left", left)
		}
	}
}

// What goes on until it is asked to end has nothing to complain about, however early
// that is; what has an answer says which signal has kept it from that.
func TestInterruptedStore(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	if code, _, stderr := fleetCommand(t, "add", "--dir", store, "../../testdata/variety/ring.pickle.gz"); code != exitOK {
		t.Fatal(stderr)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interruption{syscall.SIGTERM})
	for _, args := range [][]string{
		{"fleet", "serve"},
		{"fleet", "work"},
		{"watch", "--listen", "unix:" + filepath.Join(dir, "w.sock")},
		{"fleet", "add", graphs},
		{"fleet", "status"},
		{"fleet", "check"},
		{"fleet", "query"},
		{"watch", "export", "r", "-o", filepath.Join(dir, "r.parquet")},
	} {
		code, said := exitInput, "ashlar: interrupted by SIGTERM\n"
		if slices.Contains(args, "serve") || slices.Contains(args, "work") || slices.Contains(args, "--listen") {
			code, said = exitOK, ""
		}
		var stdout, stderr bytes.Buffer
		if got := execute(ctx, stdio{out: &stdout, err: &stderr}, append(args, "--dir", store)); got != code || stderr.String() != said {
			t.Errorf("%q: status %d, %q", args, got, &stderr)
		}
	}
	said := addFailure(ctx, fmt.Errorf("a.pickle is not added: %w", context.Cause(ctx)), 3, 1000)
	if want := "interrupted by SIGTERM: 3 of 1,000 files are in the fleet; run it again for the others"; said != want {
		t.Errorf("%q", said)
	}
}

// What happens when, by the clock.
func TestEnding(t *testing.T) {
	for _, tt := range []struct {
		name    string
		declare func(context.Context) <-chan struct{}
		late    bool // it is ended if it goes on after the first signal
		second  bool // it is ended at the second one
		hurries bool // and does what is left faster
	}{
		{"reading", func(context.Context) <-chan struct{} { return nil }, true, true, false},
		{"gpu bench", func(ctx context.Context) <-chan struct{} { takesTime(ctx); return nil }, false, true, false},
		{"host run", untilHurried, false, false, true},
	} {
		for _, again := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				e := &ending{again: make(chan struct{})}
				ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), endingKey{}, e))
				signals := make(chan os.Signal, 2)
				quit := make(chan struct{})
				go e.watch(signals, cancel, func() { close(quit) })
				hurry := tt.declare(ctx)
				is := func(c <-chan struct{}) bool {
					synctest.Wait()
					select {
					case <-c:
						return true
					default:
						return false
					}
				}
				time.Sleep(time.Hour)
				if is(ctx.Done()) || is(quit) {
					t.Errorf("%s ends without a signal", tt.name)
				}
				signals <- os.Interrupt
				if !is(ctx.Done()) || is(quit) || is(hurry) || !errors.Is(context.Cause(ctx), context.Canceled) {
					t.Errorf("%s, first signal: ended %v, quit %v, hurried %v", tt.name, is(ctx.Done()), is(quit), is(hurry))
				}
				if again {
					signals <- syscall.SIGTERM
					if is(quit) != tt.second || is(hurry) != tt.hurries {
						t.Errorf("%s, second signal: quit %v, hurried %v", tt.name, is(quit), is(hurry))
					}
					return
				}
				time.Sleep(patience - 1)
				if is(quit) {
					t.Errorf("%s quits too soon", tt.name)
				}
				time.Sleep(time.Hour)
				if is(quit) != tt.late || is(hurry) {
					t.Errorf("%s, an hour later: quit %v, hurried %v", tt.name, is(quit), is(hurry))
				}
				signals <- syscall.SIGTERM
				if is(quit) != tt.second || is(hurry) != tt.hurries {
					t.Errorf("%s, second signal an hour later: quit %v, hurried %v", tt.name, is(quit), is(hurry))
				}
			})
		}
	}
}

// What nohup starts does not end when the terminal is closed.
func TestNohup(t *testing.T) {
	if !slices.Contains(endSignals(), os.Signal(syscall.SIGHUP)) {
		t.Skip("the tests are run by nohup")
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if slices.Contains(endSignals(), os.Signal(syscall.SIGHUP)) {
		t.Error("SIGHUP is ignored and asks to end")
	}
}
