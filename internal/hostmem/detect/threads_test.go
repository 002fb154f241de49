//go:build linux

package detect

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// A process goes on when its first thread has ended.
func TestWithoutFirstThread(t *testing.T) {
	lib := jemalloc(t)
	pid := running(t, preload(lib), compile(t, "hold", "-DLEADERLESS", "-lpthread"))
	for { // the kernel lets threads know before it is done
		if s, err := proc.ReadStat(pid); err != nil || s.Ended() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	r := both(t, pid, want{Jemalloc, `5\..*`, lib, slotOfHold, Certain})
	if r.PID != pid || r.Threads != 1 || r.RSSBytes == 0 || len(r.Notes) != 1 || r.Notes[0] != "its first thread has ended, the others go on" {
		t.Errorf("process %d, %d threads, %d bytes, notes %q", r.PID, r.Threads, r.RSSBytes, r.Notes)
	}
	r, err := Watched(t.Context(), pid, 250*time.Millisecond)
	if err != nil || r.Growth.Samples < 2 || r.Growth.LastRSSBytes == 0 || r.Growth.Execs != 0 || r.Growth.Ended {
		t.Errorf("%+v, %v", r, err)
	}
}

// A forked process has not got the thread that its parent was to have.
func TestNoBackgroundThread(t *testing.T) {
	env := []string{"LD_PRELOAD=" + jemalloc(t), "MALLOC_CONF=background_thread:true"}
	parent := running(t, env, compile(t, "hold", "-DFORKED"))
	kids := proc.Children(parent)
	if len(kids) != 1 {
		t.Fatalf("%d children", len(kids))
	}
	for pid, want := range map[int]string{
		parent: "jemalloc's background thread is running", kids[0]: "although its options ask for one, it has " + NoBackgroundThread,
	} {
		r, err := inspect(pid, true)
		if err != nil || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], want) {
			t.Errorf("%v, %v, want %q", r, err, want)
		}
	}
	for conf, want := range map[string]bool{
		"background_thread:true": true, "background_thread:true,background_thread:false": false, "narenas;1,background_thread:true": false,
		"background_thread:true,background_thread:no": true, "": false,
	} {
		if got := confBackground(nil, conf, ""); got != want {
			t.Errorf("%s: %v", conf, got)
		}
	}
}

// A process that begins to run another program while it is watched: the answer
// is about that one, and so is the growth, also if it is the same file.
func TestWatchedExec(t *testing.T) {
	program := compile(t, "hold")
	cmd := exec.Command("sh", "-c", `echo up; sleep 1; exec "$0"`, program)
	pid := start(t, cmd, nil)
	r, err := Watched(t.Context(), pid, 2500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if g := r.Growth; g.Execs != 1 || g.Samples < 2 || g.Seconds > 2 {
		t.Errorf("%+v", g)
	}
	if r.Executable != program || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], " before, "+program+" at the end; growth is that since then") {
		t.Errorf("%s, notes %q", r.Executable, r.Notes)
	}

	r, err = Command(t.Context(), []string{"sh", "-c", `sleep 1; exec "$0" 0.3`, "sleep"}, Options{Settle: 100 * time.Millisecond, For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if r.Growth.Execs != 1 || !r.Growth.Ended || r.Exit == nil || filepath.Base(r.Command[0]) != "sleep" {
		t.Errorf("%v, growth %+v, exit %+v", r.Command, r.Growth, r.Exit)
	}
}

func TestRefusal(t *testing.T) {
	user := func(real, effective, saved int, closed bool, caps uint64) *proc.Credentials {
		return &proc.Credentials{RealUID: real, UID: effective, SavedUID: saved, Closed: closed, Capabilities: caps}
	}
	const trace = 1 << 19
	me := user(1234, 1234, 1234, false, 0)
	for _, test := range []struct {
		me, it *proc.Credentials
		want   string
	}{
		{me, nil, "may not be looked into: only its user or root"},
		{me, user(4321, 4321, 4321, false, 0), "belongs to 4321: only its user or root"},
		{me, user(1234, 1234, 1234, true, 0), "is yours, but is not dumpable: "},
		{me, user(1234, 1234, 1234, false, 1), "is yours, but has capabilities that you have not: only root"},
		{me, user(1234, 1234, 4321, true, 0), "is yours, but has the rights of 4321 too: only root"},
		{me, user(1234, 1234, 1234, false, 0), "is yours, but the kernel keeps it closed: "},
		{user(0, 0, 0, false, 1), user(4321, 4321, 4321, false, 0), "belongs to 4321; you are root, but without CAP_SYS_PTRACE"},
		{user(0, 0, 0, false, 1), user(0, 0, 0, false, 3), "is yours; you are root, but without CAP_SYS_PTRACE"},
		{user(0, 0, 0, false, trace), user(4321, 4321, 4321, false, 0), "belongs to 4321, and you may look into those of others, but not into this one"},
	} {
		if got := refusal(test.me, test.it); !strings.HasPrefix(got, test.want) {
			t.Errorf("%+v, %+v: %q, want %q", test.me, test.it, got, test.want)
		}
	}
}
