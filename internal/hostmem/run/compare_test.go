package run

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

// plain is glibc alone.
func plain(t *testing.T) []variant.Ready { return find(t, "glibc") }

// find looks for variants on this machine.
func find(t *testing.T, list string) []variant.Ready {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc to measure by")
	}
	chosen, err := variant.Choose(list)
	if err != nil {
		t.Fatal(err)
	}
	ready, missing := variant.Search(t.Context(), chosen, t.TempDir())
	if len(missing) > 0 {
		t.Skipf("%s needs %s (%s)", missing[0].Variant, missing[0].Needs, missing[0].Install)
	}
	return ready
}

// marked has a variable in the environment by which its processes are found.
func marked(t *testing.T) []string {
	return append(os.Environ(), fmt.Sprintf("ASHLAR_TEST=%s.%d", t.Name(), os.Getpid()))
}

// leftOver lists the processes that a test has not ended.
func leftOver(t *testing.T) []int {
	var left []int
	mark := fmt.Sprintf("ASHLAR_TEST=%s.%d", t.Name(), os.Getpid())
	for _, s := range proc.All() {
		if env, err := proc.Environ(s.PID); err == nil && slices.Contains(env, mark) && !s.Ended() {
			left = append(left, s.PID)
		}
	}
	return left
}

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

// mustCompare compares, and nothing is left running.
func mustCompare(t *testing.T, s Spec, ready []variant.Ready, repeat int) *Comparison {
	t.Helper()
	s.Environ = marked(t)
	c, err := Compare(t.Context(), s, ready, repeat, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left := leftOver(t); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	return c
}

func TestToItsEnd(t *testing.T) {
	t.Parallel()
	c := mustCompare(t, Spec{Command: shell("sleep 0.4; exit 3")}, plain(t), 2)
	r := c.Results[0]
	if r.Runs != 2 || *r.ExitCode != 3 || *r.Final != FinalAtExit || r.Error != nil || !r.Verified || *r.PeakRSS == 0 {
		t.Errorf("%+v", r)
	}
	if *r.WallS < 0.4 || r.Retained != nil || r.Spread == nil {
		t.Errorf("%v s, retained %v, %v", *r.WallS, r.Retained, r.Spread)
	}
}

// A service is driven, settles, and is ended with all it has started.
func TestService(t *testing.T) {
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "loaded")
	c := mustCompare(t, Spec{
		Command: shell("sleep 1000 & sleep 0.3; echo up; sleep 1000"), Ready: &Ready{Text: "up"},
		Load: "sleep 0.2; echo x >> " + seen, Settle: 300 * time.Millisecond,
	}, plain(t), 1)
	r := c.Results[0]
	if r.Error != nil || *r.Final != FinalSettled || r.Retained == nil || r.ExitCode != nil || !r.Verified || r.Processes < 2 {
		t.Errorf("%+v %v", r, r.Error)
	}
	if data, err := os.ReadFile(seen); err != nil || string(data) != "x\n" {
		t.Errorf("the load has written %q, %v", data, err)
	}
	var phases []Phase
	for _, p := range r.Typical().Points {
		if n := len(phases); n == 0 || phases[n-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
	}
	if want := []Phase{Starting, Driven, Settling}; !slices.Equal(phases, want) {
		t.Errorf("phases %v", phases)
	}
}

func TestLoadIsCutOff(t *testing.T) {
	t.Parallel()
	c := mustCompare(t, Spec{Command: shell("sleep 1000"), Load: "sleep 1000", For: 200 * time.Millisecond}, plain(t), 1)
	if r := c.Results[0]; r.Error != nil || *r.WallS > 100 {
		t.Errorf("%+v", r)
	}
}

// What goes wrong is told in the row.
func TestFailures(t *testing.T) {
	t.Parallel()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer busy.Close()
	answering := httptest.NewServer(http.NotFoundHandler())
	defer answering.Close()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	for _, tt := range []struct {
		name string
		spec Spec
		want string
	}{
		{"crash", Spec{Command: shell("echo oh no; kill -SEGV $$")}, "it ended with signal segmentation fault: oh no"},
		{"not ready", Spec{Command: shell("sleep 1000"), Ready: &Ready{Text: "up"}, ReadyWithin: 100 * time.Millisecond}, `it did not print "up" within 100ms`},
		{"no answer", Spec{Command: shell("sleep 1000"), Ready: &Ready{URL: nobody.URL}, ReadyWithin: 200 * time.Millisecond}, nobody.URL + " did not answer within 200ms: connection refused"},
		{"not yet", Spec{Command: shell("sleep 1000"), Ready: &Ready{URL: busy.URL}, ReadyWithin: 200 * time.Millisecond}, "it was not ready within 200ms: " + busy.URL + " answers with status 503 Service Unavailable"},
		{"another answers", Spec{Command: shell("sleep 1000"), Ready: &Ready{URL: answering.URL}}, "answers before the command was started"},
		{"ends first", Spec{Command: shell("echo port taken; exit 4"), Ready: &Ready{Text: "up"}}, "it ended before it was ready with exit code 4: port taken"},
		{"load fails", Spec{Command: shell("sleep 1000"), Load: "echo refused; exit 7"}, "the load ended with exit code 7: refused"},
		{"load fails in silence", Spec{Command: shell("sleep 1000"), Load: "exit 7"}, "the load ended with exit code 7"},
		{"ends under load", Spec{Command: shell("sleep 0.2"), Load: "sleep 1000"}, "it ended while it was driven with exit code 0"},
		{"ends alone", Spec{Command: shell("sleep 0.3"), For: time.Millisecond, Settle: time.Hour}, "it ended while it was left alone with exit code 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := mustCompare(t, tt.spec, plain(t), 1)
			if e := c.Results[0].Error; e == nil || !strings.Contains(*e, tt.want) || strings.HasSuffix(*e, ":") || !c.Failed() {
				t.Errorf("%v", *e)
			}
		})
	}
	if _, err := Compare(t.Context(), Spec{Command: []string{"no-such-command"}}, plain(t), 1, nil); err == nil || !strings.Contains(err.Error(), "no-such-command cannot be run") {
		t.Errorf("%v", err)
	}
}

// A command may end before its time is over.
func TestEndsEarly(t *testing.T) {
	t.Parallel()
	c := mustCompare(t, Spec{Command: shell("sleep 0.3"), For: time.Hour, Settle: time.Hour}, plain(t), 1)
	if r := c.Results[0]; r.Error != nil || *r.Final != FinalAtExit || *r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
}

func TestIgnoresSIGTERM(t *testing.T) {
	t.Parallel()
	s := Spec{Command: shell("trap '' TERM; echo up; while :; do sleep 1; done"), Ready: &Ready{Text: "up"}, Grace: 300 * time.Millisecond}
	c := mustCompare(t, s, plain(t), 1)
	if want := []string{"under glibc it ignored SIGTERM and was killed"}; !slices.Equal(c.Notes, want) || c.Results[0].Error != nil {
		t.Errorf("%q", c.Notes)
	}
}

// What a command leaves behind when it ends is ended too.
func TestLeavesChildren(t *testing.T) {
	t.Parallel()
	c := mustCompare(t, Spec{Command: shell("sleep 1000 & sleep 0.3")}, plain(t), 1)
	if r := c.Results[0]; r.Error != nil || *r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
}

// Where orphans do not come to this program, signals go to the group of the
// command alone; who has left it is told. It runs alone: another run would have
// them come.
func TestAnotherGroup(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	s := Spec{Command: shell("setsid sleep 1000 & sleep 1000"), For: 300 * time.Millisecond, Environ: marked(t), unadopted: true}
	c, err := Compare(t.Context(), s, plain(t), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	left := leftOver(t)
	for _, pid := range left {
		defer syscall.Kill(pid, syscall.SIGKILL)
	}
	if len(left) != 1 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], fmt.Sprintf("left process %d (sleep 1000) running: it is in another process group and was not signalled", left[0])) {
		t.Errorf("%v, %q", left, c.Notes)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ready := find(t, "glibc-arena2")
	s := Spec{Command: shell("trap '' TERM; sleep 0.4; [ -z \"$MALLOC_ARENA_MAX\" ] || while :; do sleep 1; done"), Environ: marked(t), Grace: 200 * time.Millisecond}
	c, err := Compare(ctx, s, ready, 3, func(done int, _ string) {
		if done == 1 {
			time.AfterFunc(300*time.Millisecond, cancel)
		}
	})
	if err != nil || !c.Interrupted || c.Results[0].Runs != 1 || c.Results[1].Runs != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if left := leftOver(t); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// A run that is measured, and only has to end, counts when the user interrupts.
// Those that ignore SIGTERM are killed after a while, and at once when the user
// asks again.
func TestInterruptedAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		again bool
		notes string
	}{
		{"once", false, "under glibc it ignored SIGTERM and was killed\nunder glibc it left process .* it ignored SIGTERM and was killed"},
		{"twice", true, "under glibc it left process .* SIGKILL has ended it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("setsid"); err != nil {
				t.Skip(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			kill := make(chan struct{})
			asked := filepath.Join(t.TempDir(), "asked")
			deaf := "(trap '' TERM; exec setsid sleep 1000) & trap \"echo > '" + asked + "'\" TERM; echo up; while :; do sleep 0.1; done"
			s := Spec{Command: shell(deaf), Environ: marked(t), Ready: &Ready{Text: "up"}, Settle: 200 * time.Millisecond, Grace: 20 * time.Second, Kill: kill}
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(asked); err == nil {
						cancel()
					}
					time.Sleep(10 * time.Millisecond)
				}
				if tt.again {
					close(kill)
				}
			}()
			c, err := Compare(ctx, s, plain(t), 2, nil)
			if err != nil || !c.Interrupted || c.Results[0].Runs != 1 || *c.Results[0].Final != FinalSettled {
				t.Errorf("%+v, %v", c, err)
			}
			if !regexp.MustCompile("^" + tt.notes + "$").MatchString(strings.Join(c.Notes, "\n")) {
				t.Errorf("%q", c.Notes)
			}
			if left := leftOver(t); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

// All variants once, then again, beginning with another.
func TestInterleaved(t *testing.T) {
	t.Parallel()
	var order []string
	ready := find(t, "glibc-arena2")
	if _, err := Compare(t.Context(), Spec{Command: []string{"true"}}, ready, 2, func(_ int, v string) { order = append(order, v) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"glibc", "glibc-arena2", "glibc-arena2", "glibc"}; !slices.Equal(order, want) {
		t.Errorf("%v", order)
	}
}

// A preload that does not reach the program is an error, a crash under one
// variant a row.
func TestVerified(t *testing.T) {
	t.Parallel()
	ready := find(t, "jemalloc,glibc-trim")
	c := mustCompare(t, Spec{Command: shell("sleep 0.5; sleep 0.1")}, ready, 1)
	for _, r := range c.Results {
		if !r.Verified || r.Error != nil || r.LibraryVersion == nil {
			t.Errorf("%s: %v, version %v", r.Variant, r.Error, r.LibraryVersion)
		}
	}
	if c.NoEffect() != nil {
		t.Error("a preload without effect")
	}
	c = mustCompare(t, Spec{Command: []string{"env", "-u", "LD_PRELOAD", "/bin/sleep", "3"}}, ready, 1)
	if r := c.Results[0]; r.Error != nil || !r.Verified {
		t.Errorf("glibc: %v", r.Error)
	}
	for _, r := range c.Results[1:] {
		if r.Verified || r.Error == nil || !strings.Contains(*r.Error, "had no effect") {
			t.Errorf("%s: %v", r.Variant, r.Error)
		}
	}
	if c.NoEffect() == nil {
		t.Error("no preload is without effect")
	}
	c = mustCompare(t, Spec{Command: shell("sleep 0.3; case \"$LD_PRELOAD\" in *jemalloc*) kill -ABRT $$;; esac; true")}, ready, 1)
	if r := c.Results[1]; r.Error == nil || *r.Error != "it ended with signal aborted" || c.Results[0].Error != nil || c.Results[2].Error != nil {
		t.Errorf("%+v", c.Results)
	}
}

// A Go program is not run under one malloc after the other.
func TestGoProgram(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	s := Spec{Command: []string{self, "-test.run", "^TestSleeper$", "-sleep"}, Environ: marked(t)}
	_, err = Compare(t.Context(), s, plain(t), 3, func(int, string) { runs++ })
	if err == nil || !strings.Contains(err.Error(), "is a Go program") || runs != 1 {
		t.Errorf("%v after %d runs", err, runs)
	}
	if left := leftOver(t); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}
