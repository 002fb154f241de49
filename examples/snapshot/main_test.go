package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/examples/internal/exampletest"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func TestRun(t *testing.T) {
	*out = filepath.Join(t.TempDir(), "snapshot.pickle")
	exampletest.Check[driver.Driver](t, run, strings.ReplaceAll(want, "FILE", *out), exampletest.Host(), exampletest.Sim())

	// What the commands make of the file: it is complete, and it ends as it did.
	f, err := snapshot.Open(t.Context(), *out, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trace, _, err := f.Pick(-1)
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.Run(t.Context(), trace, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := v.Result
	if !r.Identical || r.Events != 365 {
		t.Errorf("%d of %d events identical; %v", r.IdenticalEvents, r.Events, r.First)
	}
	last := trace.Events.At(trace.Events.Len() - 1)
	if last.Action != alloc.ActionOOM || trace.Strings.Text(last.Meta) != "step 62" {
		t.Errorf("the last event is %v of %q", last.Action, trace.Strings.Text(last.Meta))
	}
}

const want = `
the work ran out of memory, as it should
365 events and 8 segments are in the file; look at them with
  ashlar view FILE
`
