package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const lessons = "../../testdata/oracle/lessons-default-1.json.gz"

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestOutputCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"verify", lessons}, {"verify", "--json", lessons}} {
		var stderr bytes.Buffer
		code := execute(t.Context(), stdio{out: brokenWriter{}, err: &stderr}, args)
		if want := "ashlar: writing the result: disk full\n"; code != exitInput || stderr.String() != want {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := execute(ctx, stdio{out: &stdout, err: &stderr}, []string{"verify", lessons})
	if code != exitInput || stdout.Len() > 0 || stderr.String() != "ashlar: interrupted\n" {
		t.Errorf("status %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
}

// The progress line appears on a terminal, after a second, and is gone at the
// end.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		p := startProgress(stdio{err: &stderr, terminal: true}, 1200, "files verified")
		after := func(d time.Duration) string {
			time.Sleep(d)
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			s := stderr.String()
			stderr.Reset()
			return s
		}
		if got := after(progressDelay - time.Millisecond); got != "" {
			t.Errorf("before the delay: %q", got)
		}
		p.pause(func() {})
		if got := after(2 * time.Millisecond); got != "\rashlar: 1 of 1,200 files verified\x1b[K" {
			t.Errorf("after the delay: %q", got)
		}
		p.pause(func() { stderr.WriteString("RESULT") })
		if got := after(0); got != "\r\x1b[KRESULT" {
			t.Errorf("the line is in the way of a result: %q", got)
		}
		if got := after(progressInterval); got != "\rashlar: 2 of 1,200 files verified\x1b[K" {
			t.Errorf("after the interval: %q", got)
		}
		p.stop()
		if got := after(time.Minute); got != "\r\x1b[K" {
			t.Errorf("at the end: %q", got)
		}
	})
}

func TestNoProgressWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		p := startProgress(stdio{err: &stderr}, 2, "files verified")
		time.Sleep(time.Minute)
		synctest.Wait()
		p.stop()
		if stderr.Len() > 0 {
			t.Errorf("%q", &stderr)
		}
	})
}

// No flag answers a wrong value in the words of Go's own packages.
func TestFlagErrorsAreWorded(t *testing.T) {
	for _, args := range [][]string{{"gen", "in", "out", "--events", "abc"}, {"tune", "in", "--budget", "x"}, {"tune", "in", "--json=maybe"}, {"host", "run", "--repeat", "1e9", "--", "true"}} {
		var stdout, stderr bytes.Buffer
		execute(t.Context(), stdio{out: &stdout, err: &stderr}, args)
		for _, word := range []string{"strconv", "time: ", "invalid syntax", "json: "} {
			if strings.Contains(stderr.String(), word) || !strings.Contains(stderr.String(), "write ") {
				t.Errorf("%v: %s", args, &stderr)
			}
		}
	}
}
