//go:build linux

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// daemonMemory is what the daemons of these tests hold, in bytes.
const daemonMemory = 40_000_000

// pythonDaemon is a classic one: it leaves its parents, its session and its
// group. Its words say what it does besides: stay (the first process does), deaf
// (to SIGTERM), member (it stays in the group), crash, quit.
const pythonDaemon = `
import os, signal, sys, time
if os.fork():
    if "stay" in sys.argv:
        time.sleep(1000)
    os._exit(0)
if "member" not in sys.argv:
    os.setsid()
if os.fork():
    os._exit(0)
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = bytearray(b"x") * 40_000_000
print("up", flush=True)
if "crash" in sys.argv or "quit" in sys.argv:
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGSEGV) if "crash" in sys.argv else os._exit(5)
time.sleep(1000)
`

// cDaemon is one that waits for nobody, and wipes its environment, as those do
// that change their title. The process between the first and the daemon has a
// second thread, which starts the daemon when the first thread has ended.
const cDaemon = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
static void *second(void *unused) {
	usleep(200000);
	if (fork()) _exit(0);
	for (char **e = environ; *e; e++) memset(*e, 0, strlen(*e));
	char *held = malloc(40000000);
	memset(held, 1, 40000000);
	puts("up");
	fflush(stdout);
	sleep(1000);
	return held;
}
int main(void) {
	pthread_t t;
	if (fork()) {
		usleep(100000);
		_exit(0);
	}
	setsid();
	pthread_create(&t, NULL, second, NULL);
	pthread_exit(NULL);
}
`

func python(t *testing.T, words ...string) []string {
	t.Helper()
	name, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	return append([]string{name, "-c", pythonDaemon}, words...)
}

func compiled(t *testing.T) []string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "daemon.c"), filepath.Join(dir, "daemon")
	if err := os.WriteFile(source, []byte(cDaemon), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-pthread", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return []string{program}
}

// leftOf is the processes that notes are about; none of them runs.
func leftOf(t *testing.T, c *Comparison) (pids []int) {
	t.Helper()
	for _, n := range c.Notes {
		if m := regexp.MustCompile(`left process (\d+) \(`).FindStringSubmatch(n); m != nil {
			pid, _ := strconv.Atoi(m[1])
			pids = append(pids, pid)
			if s, err := proc.ReadStat(pid); err == nil {
				t.Errorf("process %d is still there: %+v", pid, s)
			}
		}
	}
	return pids
}

// A service that goes to the background is measured there, and ended.
func TestDaemon(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		command func(t *testing.T) []string
		note    string
	}{
		{"python", func(t *testing.T) []string { return python(t) }, "in another process group: SIGTERM has ended it"},
		{"its parent stays", func(t *testing.T) []string { return python(t, "stay") }, "in another process group: SIGTERM has ended it"},
		{"deaf", func(t *testing.T) []string { return python(t, "deaf") }, "in another process group: it ignored SIGTERM and was killed"},
		{"without an environment", func(t *testing.T) []string { return append([]string{"env", "-i"}, python(t)...) }, "in another process group: SIGTERM has ended it"},
		{"C", compiled, "in another process group: SIGTERM has ended it"},
		{"of its group", func(t *testing.T) []string { return python(t, "member") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := Spec{Command: tt.command(t), Ready: &Ready{Text: "up"}, For: 100 * time.Millisecond, Settle: 200 * time.Millisecond, Grace: 300 * time.Millisecond}
			c := mustCompare(t, s, plain(t), 1)
			r := c.Results[0]
			if r.Error != nil || !r.Verified || r.ExitCode != nil || *r.Final != FinalSettled || *r.FinalRSS < daemonMemory || *r.PeakRSS < daemonMemory {
				t.Errorf("%+v, %v, %+v", r, r.Error, r.Typical())
			}
			want := 1
			if tt.note == "" {
				want = 0
			}
			if pids := leftOf(t, c); len(pids) != want || len(c.Notes) != want || want > 0 && !strings.HasSuffix(c.Notes[0], tt.note) {
				t.Errorf("%q", c.Notes)
			}
		})
	}
}

// So it is where this program is the first process of a container.
func TestDaemonInContainer(t *testing.T) {
	t.Parallel()
	python(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unshare := []string{"unshare", "--pid", "--fork", "--mount-proc"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("there is no container to be had: %v: %s", err, out)
	}
	out, err := exec.Command(unshare[0], append(unshare[1:], self, "-test.v", "-test.run", "^TestFirstProcess$|^TestDaemon$/^(python|deaf)$|^TestStrangers$")...).CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: ") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFirstProcess tells TestDaemonInContainer where it is.
func TestFirstProcess(t *testing.T) {
	if os.Getpid() != 1 {
		t.Skip("this is no container")
	}
}

// When the daemon ends, the service has.
func TestDaemonEnds(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"crash": " with signal segmentation fault: up",
		"quit":  " with exit code 5: up",
	} {
		s := Spec{Command: python(t, word), Ready: &Ready{Text: "up"}, Settle: time.Hour}
		c := mustCompare(t, s, plain(t), 1)
		if r := c.Results[0]; r.Error == nil || !strings.HasPrefix(*r.Error, "it ended ") || !strings.HasSuffix(*r.Error, want) || len(c.Notes) > 0 {
			t.Errorf("%s: %+v, %q", word, r, c.Notes)
		}
	}
}

// Only a command that is to run on can go to the background; one that leaves a
// daemon behind when it ends has ended.
func TestLeavesDaemon(t *testing.T) {
	t.Parallel()
	c := mustCompare(t, Spec{Command: shell("setsid sleep 1000 & sleep 0.3; exit 3")}, plain(t), 2)
	if r := c.Results[0]; r.Error != nil || *r.ExitCode != 3 {
		t.Errorf("%+v", r)
	}
	if pids := leftOf(t, c); len(pids) != 1 || !strings.HasSuffix(c.Notes[len(c.Notes)-1], "(sleep 1000) in another process group: SIGTERM has ended it (and 1 like it in other runs)") {
		t.Errorf("%q", c.Notes)
	}
}

func TestDaemonInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	driven := filepath.Join(t.TempDir(), "driven")
	s := Spec{
		Command: python(t, "deaf"), Environ: marked(t), Ready: &Ready{Text: "up"},
		Load: "echo > '" + driven + "'; sleep 1000", Grace: 200 * time.Millisecond,
	}
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(driven); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	c, err := Compare(ctx, s, plain(t), 1, nil)
	if err != nil || !c.Interrupted {
		t.Errorf("%+v, %v", c, err)
	}
	if pids := leftOf(t, c); len(pids) != 1 {
		t.Errorf("%q", c.Notes)
	}
	if left := leftOver(t); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// A daemon of the load is ended with the load, and is none of the command's.
func TestDaemonOfLoad(t *testing.T) {
	t.Parallel()
	load := exec.Command(python(t)[0], "-c", pythonDaemon).Args
	s := Spec{Command: shell("sleep 1000"), Load: fmt.Sprintf("%s -c '%s'; sleep 0.5", load[0], load[2]), Settle: 100 * time.Millisecond}
	c := mustCompare(t, s, plain(t), 1)
	if r := c.Results[0]; r.Error != nil || *r.PeakRSS > daemonMemory/2 {
		t.Errorf("%+v, %v", r, r.Error)
	}
	if pids := leftOf(t, c); len(pids) != 1 || !strings.HasPrefix(c.Notes[0], "under glibc the load left process ") {
		t.Errorf("%q", c.Notes)
	}
}

// zombies is the children of this program that wait to be collected.
func zombies() (all []string) {
	for _, pid := range proc.Children(os.Getpid()) {
		if s, err := proc.ReadStat(pid); err == nil && s.Ended() {
			all = append(all, fmt.Sprintf("%d %s", pid, s.Name))
		}
	}
	return all
}

func isSubreaper() bool {
	var flag int32
	return unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&flag)), 0, 0, 0) == nil && flag != 0
}

// Orphans come to this program while a command runs, and are collected. What
// they used is counted.
func TestOrphansAreCollected(t *testing.T) {
	if isSubreaper() || len(zombies()) > 0 {
		t.Fatalf("before: a subreaper is %v, zombies %q", isSubreaper(), zombies())
	}
	during := make(chan struct{})
	go func() {
		for !isSubreaper() {
			time.Sleep(time.Millisecond)
		}
		close(during)
	}()
	// Some end before their parent, some after it.
	orphans := "for i in 1 2 3 4 5; do (sleep 0.1 & setsid sleep 0.2 &) ; done; "
	busy := "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; times > done"
	wait := "while ! [ -s done ]; do sleep 0.05; done; sleep 0.3"
	s := Spec{Command: shell(orphans + "(sh -c '" + busy + "' &) ; " + wait), Dir: t.TempDir()}
	c := mustCompare(t, s, plain(t), 1)
	if r := c.Results[0]; r.Error != nil || len(c.Notes) > 0 || *r.CPUS < 0.05 {
		t.Errorf("%+v, %v, %q, %v s", r, r.Error, c.Notes, *r.CPUS)
	}
	select {
	case <-during:
	default:
		t.Error("no subreaper while it ran")
	}
	if isSubreaper() || len(zombies()) > 0 {
		t.Errorf("after: a subreaper is %v, zombies %q", isSubreaper(), zombies())
	}
	// Two hold it: it is given back with the last.
	first, _ := holdOrphans()
	second, _ := holdOrphans()
	first()
	first()
	if !isSubreaper() {
		t.Error("given back too soon")
	}
	second()
	if isSubreaper() {
		t.Error("not given back")
	}
}

// Who does not descend from the command is left alone: another child of this
// program, that has its own session; its orphan, which comes to this program too;
// and a child that ends is left to who waits for it.
func TestStrangers(t *testing.T) {
	release, ok := holdOrphans()
	if !ok {
		t.Skip("orphans do not come to this program")
	}
	defer release()
	strangers := exec.Command("sh", "-c", "(setsid sleep 1000 & echo $!); exec sleep 1000")
	strangers.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := strangers.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	short := exec.Command("sh", "-c", "sleep 0.3; exit 7")
	for _, cmd := range []*exec.Cmd{strangers, short} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	c := mustCompare(t, Spec{Command: python(t), Ready: &Ready{Text: "up"}, For: 600 * time.Millisecond}, plain(t), 1)
	if pids := leftOf(t, c); len(pids) != 1 {
		t.Errorf("%q", c.Notes)
	}
	var orphan int
	if _, err := fmt.Fscan(out, &orphan); err != nil {
		t.Fatal(err)
	}
	defer func() {
		strangers.Process.Kill()
		strangers.Wait()
		syscall.Kill(orphan, syscall.SIGKILL)
		syscall.Wait4(orphan, nil, 0, nil)
	}()
	if s, err := proc.ReadStat(orphan); err != nil || s.Ended() || s.Parent != os.Getpid() {
		t.Errorf("the orphan of another: %+v, %v", s, err)
	}
	if s, err := proc.ReadStat(strangers.Process.Pid); err != nil || s.Ended() {
		t.Errorf("another child: %+v, %v", s, err)
	}
	var exit *exec.ExitError
	if err := short.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("how another child ended: %v", err)
	}
}

// A signal needs the very process that was seen, and that it descends from this
// program.
func TestSignalDescendant(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	s, err := proc.ReadStat(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	other := *s
	other.Start++
	parent, err := proc.ReadStat(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	const nothing = syscall.Signal(0)
	for _, tt := range []struct {
		name string
		stat *proc.Stat
		want bool
	}{{"the same", s, true}, {"one with its number", &other, false}, {"who has started us", parent, false}} {
		if signalDescendant(tt.stat, nothing) != tt.want {
			t.Errorf("%s: not %v", tt.name, tt.want)
		}
	}
}
