//go:build linux

package detect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// quick is long enough to have a shell replaced by what it starts.
var quick = Options{Settle: 200 * time.Millisecond}

// gone fails if a process with the word in its command line is left.
func gone(t *testing.T, word string) {
	t.Helper()
	for _, s := range proc.All() {
		if args, err := proc.Arguments(s.PID); err == nil && !s.Ended() && strings.Contains(strings.Join(args, " "), word) {
			t.Errorf("still running: %d %q", s.PID, args)
		}
	}
}

func TestCommand(t *testing.T) {
	r, err := Command(t.Context(), []string{"sh", "-c", "exec sleep 1234.5"}, quick)
	if err != nil {
		t.Fatal(err)
	}
	if r.Allocator != Glibc || filepath.Base(r.Command[0]) != "sleep" || r.Exit != nil || r.Growth != nil {
		t.Errorf("%+v", r)
	}
	gone(t, "1234.5")
}

// Even a command that is over at once is looked into.
func TestCommandThatEnds(t *testing.T) {
	for _, test := range []struct {
		argv []string
		want string
	}{
		{[]string{"true"}, "exit status 0"},
		{[]string{"sh", "-c", "echo first >&2; echo last words >&2; exit 7"}, "exit status 7, last words"},
		{[]string{"sh", "-c", "kill -15 $$"}, "signal: terminated"},
	} {
		r, err := Command(t.Context(), test.argv, Options{Settle: time.Minute})
		if err != nil {
			t.Fatalf("%q: %v", test.argv, err)
		}
		if r.Allocator != Glibc || r.Exit == nil || r.Exit.Text() != test.want {
			t.Errorf("%q: %s, %+v", test.argv, r.Allocator, r.Exit)
		}
	}
}

// Nothing is left running: what ignores SIGTERM, what has left the process
// group, what was left by its parent.
func TestCommandLeavesNothing(t *testing.T) {
	script := filepath.Join(t.TempDir(), "leave-1234.6")
	text := "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 1234.6; : ' &) ; sleep 1234.6 & sleep 1234.6; sleep 1234.6"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Command(t.Context(), []string{"sh", script}, quick)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Children) < 2 {
		t.Errorf("%d children", len(r.Children))
	}
	gone(t, "1234.6")
}

func TestCommandInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Command(ctx, []string{"sleep", "1234.7"}, Options{Settle: time.Minute})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	gone(t, "1234.7")
}

func TestCommandWatched(t *testing.T) {
	r, err := Command(t.Context(), []string{"sleep", "0.6"}, Options{Settle: 50 * time.Millisecond, For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if r.Growth == nil || !r.Growth.Ended || r.Exit == nil || r.Exit.Text() != "exit status 0" || r.Growth.Samples < 2 {
		t.Errorf("growth %+v, exit %+v", r.Growth, r.Exit)
	}
}

func TestCommandErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		argv []string
		want string
	}{
		{nil, "there is no command"},
		{[]string{"no-such-command"}, "there is no command no-such-command"},
		{[]string{file}, file + " cannot be started: "},
	} {
		if _, err := Command(t.Context(), test.argv, quick); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%q: %v", test.argv, err)
		}
	}
}
