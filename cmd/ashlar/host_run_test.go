package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
	hostrun "github.com/ashlar-mem/ashlar/internal/hostmem/run"
)

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// A real service under all variants: it is ready when it answers, is driven by
// requests, settles, and nothing of it is left.
func TestHostService(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("processes can be measured on Linux only")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	port := fmt.Sprint(freePort(t))
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, []string{
		"host", "run", "--json", "--repeat", "1", "--settle", "600ms", "--for", "60s",
		"--ready", "http://127.0.0.1:" + port + "/", "--load", "python3 ../../testdata/host/load.py " + port + " 40",
		"--", "python3", "../../testdata/host/server.py", port,
	})
	if code != exitOK || stderr.Len() > 0 {
		t.Fatalf("exit status %d, %s", code, &stderr)
	}
	var c hostrun.Comparison
	if err := json.Unmarshal(stdout.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	// The time is too short for a thread that takes a second.
	c.Notes = slices.DeleteFunc(c.Notes, func(n string) bool { return strings.Contains(n, "still falling") })
	if len(c.Results)+len(c.Missing) != 9 || len(c.Notes) > 0 {
		t.Errorf("%d results, %d missing, %q", len(c.Results), len(c.Missing), c.Notes)
	}
	for _, r := range c.Results {
		if r.Error != nil || !r.Verified || *r.Final != hostrun.FinalSettled || r.Retained == nil || *r.FinalRSS > *r.PeakRSS || *r.FinalPSS > *r.FinalRSS {
			t.Errorf("%+v, %v", r, r.Error)
		}
	}
	for _, s := range proc.All() {
		args, err := proc.Arguments(s.PID)
		if line := strings.Join(args, " "); err == nil && strings.Contains(line, "server.py "+port) {
			t.Errorf("process %d is left: %s", s.PID, line)
		}
	}
}

// A command that fails whatever the malloc gets no advice.
func TestHostCommandFails(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("processes can be measured on Linux only")
	}
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, []string{
		"host", "run", "--repeat", "2", "--variants", "glibc,glibc-trim", "--", "sh", "-c", "sleep 0.3; exit 3",
	})
	if code != exitBad || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "sh failed under every malloc, with exit code 3") {
		t.Errorf("exit status %d, %s", code, &stderr)
	}
	if text := stdout.String(); strings.Contains(text, "Recommended") || !strings.Contains(text, "exit code 3") {
		t.Error(text)
	}
}
