//go:build unix

package watch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A command that takes too long ends with all that it started, and the alarm that is
// stored says so.
func TestLongCommand(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// Children that live have it open for writing.
	alive, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	c, h := newClock(), newTestHub(t, t.TempDir())
	s := newTestServer(t, h, c, "a: allocated > 1 -> run sleep 600 >"+fifo+" & sleep 600 >"+fifo+"; true")
	s.commandTime = time.Second
	hello(t, s, testSession, 0)
	call(t, s, "/v1/samples", batch(c, testSession, 1, 1))
	s.work.Wait()
	a := newTestServer(t, h, c, "").Status().Alarms
	if len(a) != 1 || !strings.HasPrefix(a[0].Actions[0].Result, "ended after 1s") {
		t.Errorf("stored: %+v", a)
	}
	alive.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := alive.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("its children live: %v", err)
	}
}

// A command whose server was killed while it ran is told as such by the next one, which
// does not run it again; one that runs is left alone.
func TestLostCommand(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	rules := "a: allocated > 1 clear 0 -> run echo >>" + ran
	c, h := newClock(), newTestHub(t, t.TempDir())
	s := newTestServer(t, h, c, rules)
	hello(t, s, testSession, 0)
	call(t, newTestServer(t, h, c, ""), "/v1/samples", batch(c, testSession, 1, 1))
	// A server that is killed here has stored the alarm, and not what came of it.
	s.saveAlarm(t.Context(), &Alarm{
		ID: "lost", Name: "a", Run: "job", Session: testSession, RaisedUS: c.now().UnixMicro() + 1, Actions: []Action{{Action: "run echo >>" + ran, TimeUS: c.now().UnixMicro()}},
	})
	seq := 1
	send := func(allocated int64) {
		t.Helper()
		seq++
		c.add(time.Second)
		one := sampleOf(c, seq)
		one["allocated"] = allocated
		if code, answer := call(t, s, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{one}}); code != 200 {
			t.Fatalf("%d %v", code, answer)
		}
		s.work.Wait()
	}
	for range 2 {
		s = newTestServer(t, h, c, rules)
		s.Load(t.Context(), recent)
		s.endLost(t.Context(), c.now())
		send(2)
		a := s.Status().Alarms
		if len(a) != 1 || a[0].Actions[0].Result != "not known: the server stopped while it ran" {
			t.Fatalf("%+v", a)
		}
	}
	send(0) // it is cleared, and raised again soon
	send(2)
	if a := s.Status().Alarms; len(a) != 2 || !strings.HasPrefix(a[1].Actions[0].Result, leftOut) {
		t.Errorf("%+v", a)
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was run again: %v", err)
	}
	c.add(actionGap)
	send(0)
	send(2)
	if _, err := os.Stat(ran); err != nil {
		t.Error(err)
	}
}

// A command that runs is not taken for one whose server has gone.
func TestRunningCommand(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "a: allocated > 1 -> run cat "+fifo)
	hello(t, s, testSession, 0)
	call(t, s, "/v1/samples", batch(c, testSession, 1, 1))
	s.endLost(t.Context(), c.now())
	if a := s.Status().Alarms; len(a) != 1 || a[0].Actions[0].Result != "" {
		t.Errorf("%+v", a)
	}
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	s.work.Wait()
	s.endLost(t.Context(), c.now())
	if a := s.Status().Alarms; a[0].Actions[0].Result != "exit status 0" {
		t.Errorf("%+v", a)
	}
}
