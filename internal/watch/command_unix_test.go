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
