package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"
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
	for _, args := range diffCommands {
		var stderr bytes.Buffer
		out := &closedPipe{}
		if code := run(t.Context(), stdio{out: out, err: &stderr}, args); code != exitOK || stderr.Len() > 0 || out.writes == 0 || out.writes > 2 {
			t.Errorf("%v into a closed pipe: status %d, %d writes, stderr %q", args, code, out.writes, &stderr)
		}
		stderr.Reset()
		code := run(t.Context(), stdio{out: brokenWriter{}, err: &stderr}, args)
		if want := "ashlar: writing the result: disk full\n"; code != exitInput || stderr.String() != want {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
		stderr.Reset()
		code = run(stopped, stdio{out: io.Discard, err: &stderr}, args)
		if want := "ashlar: interrupted\n"; code != exitInput || stderr.String() != want {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
	}
}

func TestCompareNatural(t *testing.T) {
	names := []string{"r10", "r2", "r02b", "r", "rank_1.pickle", "r2a", "s1", "rank_11.pickle", "rank_2.pickle", "r99999999999999999999", "r100000000000000000000"}
	want := []string{"r", "r2", "r2a", "r02b", "r10", "r99999999999999999999", "r100000000000000000000", "rank_1.pickle", "rank_2.pickle", "rank_11.pickle", "s1"}
	slices.SortFunc(names, compareNatural)
	if !slices.Equal(names, want) {
		t.Errorf("got %v\nwant %v", names, want)
	}
}
