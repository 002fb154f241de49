package run

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// service is the HTTP service of testdata/host; deaf, it ignores SIGTERM.
func service(t *testing.T) Spec {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	return Spec{
		Command: []string{"python3", "../../../testdata/host/server.py", port, "deaf"},
		Ready:   &Ready{URL: "http://127.0.0.1:" + port + "/"},
		Load:    "python3 ../../../testdata/host/load.py " + port + " 10",
		Grace:   300 * time.Millisecond,
	}
}

// A service that ignores SIGTERM is killed when it has been measured.
func TestDeafService(t *testing.T) {
	t.Parallel()
	s := service(t)
	s.Settle = 300 * time.Millisecond
	c := mustCompare(t, s, plain(t), 1)
	if r := c.Results[0]; r.Error != nil || !r.Verified || *r.Final != FinalSettled || *r.Retained <= 0 {
		t.Errorf("%+v, %v", r, r.Error)
	}
	if want := []string{"under glibc it ignored SIGTERM and was killed"}; !slices.Equal(c.Notes, want) {
		t.Errorf("%q", c.Notes)
	}
}

// So it is when the user does not want to wait, while it is driven or idle; the
// load ends too.
func TestDeafServiceInterrupted(t *testing.T) {
	t.Parallel()
	for _, phase := range []Phase{Driven, Settling} {
		s := service(t)
		s.Environ, s.Settle = marked(t), time.Hour
		if phase == Driven {
			s.Load += "000000"
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		c, err := Compare(ctx, s, plain(t), 1, nil)
		if err != nil || !c.Interrupted || c.Results[0].Runs != 0 {
			t.Errorf("%s: %+v, %v", phase, c, err)
		}
		if left := leftOver(t); len(left) > 0 {
			t.Errorf("%s: left running: %v", phase, left)
		}
	}
}
