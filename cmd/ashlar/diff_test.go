package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

var diffCommands = [][]string{
	{"diff", served, "--at", "peak", "--at", "end"},
	{"diff", "--json", served, served},
	{"diff", served, served, served},
	{"diff", "--json", served, served, served},
}

func TestDiffReportsFailures(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range short.Some(diffCommands, 1) {
		var stderr bytes.Buffer
		out := &closedPipe{}
		if code := execute(t.Context(), stdio{out: out, err: &stderr}, args); code != exitOK || stderr.Len() > 0 || out.writes == 0 || out.writes > 2 {
			t.Errorf("%v into a closed pipe: status %d, %d writes, stderr %q", args, code, out.writes, &stderr)
		}
		stderr.Reset()
		code := execute(t.Context(), stdio{out: brokenWriter{}, err: &stderr}, args)
		if want := "ashlar: writing the result: disk full\n"; code != exitInput || stderr.String() != want {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
		stderr.Reset()
		code = execute(stopped, stdio{out: io.Discard, err: &stderr}, args)
		if want := "ashlar: interrupted\n"; code != exitInput || stderr.String() != want {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
	}
}
