package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
)

const died = "../../testdata/snapshots/leak_graph-tight-default.pickle.gz"

var answering = [][]string{
	{"whatif", died, "--set", "expandable_segments:True"},
	{"whatif", died, "--set", "expandable_segments:True", "--json"},
	{"policies", died, "--policy", "best-fit"},
	{"policies", died, "--policy", "best-fit", "--json"},
	{"check", died, "--max-reserved", "1TiB", "--max-ooms", "1"},
	{"check", died, "--survives", "1TiB", "--max-ooms", "1", "--json"},
}

func TestAnsweringCommandsReportFailures(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range answering {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), stdio{out: brokenWriter{}, err: &stderr}, args)
		if want := "ashlar: writing the result: disk full\n"; code != exitInput || stderr.String() != want {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
		stderr.Reset()
		code = execute(t.Context(), stdio{out: &closedPipe{}, err: &stderr}, args)
		if code != exitOK || stderr.Len() > 0 {
			t.Errorf("%v: a closed pipe: status %d, stderr %q", args, code, &stderr)
		}
		stderr.Reset()
		stdout.Reset()
		code = execute(stopped, stdio{out: &stdout, err: &stderr}, args)
		if want := "ashlar: interrupted\n"; code != exitInput || stderr.String() != want {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
		if asJSON := slices.Contains(args, "--json"); strings.Contains(stdout.String(), `"error": "interrupted"`) != asJSON || !asJSON && stdout.Len() > 0 {
			t.Errorf("%v: stdout %q", args, &stdout)
		}
	}
}

// Interrupted amid the sweep, what is known is printed.
func TestWhatifInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var o whatifOptions
	o.confs, o.onOOM.value, o.device = []string{"", "expandable_segments:True"}, "die", &deviceFlag{number: -1}
	q, err := o.question()
	if err != nil {
		t.Fatal(err)
	}
	q.Workers = 1
	var stdout, stderr bytes.Buffer
	q.Progress = func(done, _ int) {
		if done == 1 {
			cancel()
		}
	}
	err = o.run(ctx, stdio{out: &stdout, err: &stderr}, died, q)
	if err != status(exitInput) || stderr.String() != "ashlar: interrupted: 1 of 3 settings are answered\n" {
		t.Errorf("%v, stderr %q", err, &stderr)
	}
	for _, part := range []string{"recorded: PyTorch's defaults\n  fails at", "interrupted; without an answer:\n  PyTorch's defaults\n  expandable_segments:True\n"} {
		if !strings.Contains(stdout.String(), part) {
			t.Errorf("no %q in\n%s", part, &stdout)
		}
	}
}
