package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// The scripts of the commands that read one file.
func TestReadingScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "reading"),
		RequireExplicitExec: true,
		Setup:               linkTestdata,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   cmdExits,
			"gunzip":  cmdGunzip,
			"cut":     cmdCut,
			"makepng": cmdMakePNG,
			"devices": cmdDevices,
			"json":    cmdJSON,
			"lines":   cmdLines,
		},
	})
}

// cmdDevices: devices OUT FILE... writes a snapshot with one device for each
// file, and the last one again as host memory.
func cmdDevices(ts *testscript.TestScript, neg bool, args []string) {
	all := &snapshot.File{}
	for i, name := range args[1:] {
		f, err := snapshot.Open(context.Background(), ts.MkAbs(name), snapshot.Options{})
		ts.Check(err)
		t := f.Traces[0]
		t.Device = 2 * i // not every number is there
		all.Traces = append(all.Traces, t)
		host := *t
		host.Host = true
		all.Host = &host
	}
	out, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(snapshot.WritePickle(out, all))
	ts.Check(out.Close())
}

// cmdJSON: json FILE PATH VALUE looks a value up in a JSON document. The path
// is made of names and positions; the value is compared as JSON.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	var v any
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	ts.Check(dec.Decode(&v))
	if dec.More() {
		ts.Fatalf("%s has more than one document", args[0])
	}
	for _, part := range strings.Split(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = at[part]; !ok {
				ts.Fatalf("%s: there is no %q", args[1], part)
			}
		case []any:
			if part == "len" {
				v = len(at)
				continue
			}
			i, err := strconv.Atoi(part)
			ts.Check(err)
			v = at[i]
		default:
			ts.Fatalf("%s: %q of %v", args[1], part, v)
		}
	}
	got, err := json.Marshal(v)
	ts.Check(err)
	if (string(got) == args[2]) == neg {
		ts.Fatalf("%s is %s, want %s", args[1], got, args[2])
	}
}

// cmdLines: lines FILE N checks the number of lines.
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if got := fmt.Sprint(strings.Count(ts.ReadFile(args[0]), "\n")); got != args[1] {
		ts.Fatalf("%s has %s lines, want %s", args[0], got, args[1])
	}
}

// closedPipe is standard output whose reader has seen enough.
type closedPipe struct{ writes int }

func (c *closedPipe) Write([]byte) (int, error) {
	c.writes++
	return 0, &os.PathError{Op: "write", Path: "stdout", Err: syscall.EPIPE}
}

var readingCommands = [][]string{{"stats"}, {"stats", "--json"}, {"events"}, {"events", "--json"}}

const served = "../../testdata/snapshots/gpt2_varlen-default.pickle.gz"

// A reader that goes away is no error, and the rest is not written for nobody.
func TestClosedPipe(t *testing.T) {
	for _, args := range readingCommands {
		var stderr bytes.Buffer
		out := &closedPipe{}
		code := execute(t.Context(), stdio{out: out, err: &stderr}, append(args, served))
		if code != exitOK || stderr.Len() > 0 || out.writes == 0 || out.writes > 2 {
			t.Errorf("%v: status %d, %d writes, stderr %q", args, code, out.writes, &stderr)
		}
	}
}

func TestReadingCommandsReportFailures(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range readingCommands {
		var stderr bytes.Buffer
		code := execute(t.Context(), stdio{out: brokenWriter{}, err: &stderr}, append(args, served))
		if want := "ashlar: writing the result: disk full\n"; code != exitInput || stderr.String() != want {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
		stderr.Reset()
		code = execute(stopped, stdio{out: io.Discard, err: &stderr}, append(args, served))
		if want := "ashlar: interrupted\n"; code != exitInput || stderr.String() != want {
			t.Errorf("%v: status %d, stderr %q", args, code, &stderr)
		}
	}
}

// All filters of events together are what one would do by hand.
func TestEventFilters(t *testing.T) {
	short.Skip(t)
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, []string{"events", "--json", "../../testdata/variety/expand_tight.pickle.gz"})
	if code != exitOK {
		t.Fatal(stderr.String())
	}
	type event struct {
		Index    int              `json:"index"`
		Since    int64            `json:"since_start_us"`
		Action   string           `json:"action"`
		Size     uint64           `json:"size_bytes"`
		Reserved uint64           `json:"reserved_bytes"`
		Live     uint64           `json:"live_bytes"`
		Frames   []timeline.Frame `json:"frames"`
	}
	var all, some struct {
		Events []event `json:"events"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	var want []event
	for _, e := range all.Events {
		named := slices.ContainsFunc(e.Frames, func(f timeline.Frame) bool { return strings.HasPrefix(f.Name, "_init_") })
		if e.Since >= 800_000 && e.Index <= 9000 && (e.Action == "alloc" || e.Action == "segment_map") && e.Size >= 4096 && e.Size <= 20<<20 && named {
			want = append(want, e)
		}
	}
	stdout.Reset()
	code = execute(t.Context(), stdio{out: &stdout, err: &stderr}, []string{
		"events", "--json", "--from", "800ms", "--to", "9000", "--action", "alloc,segment_map",
		"--min-size", "4K", "--max-size", "20MiB", "--stack", ` _init_`, "../../testdata/variety/expand_tight.pickle.gz",
	})
	if err := json.Unmarshal(stdout.Bytes(), &some); code != exitOK || err != nil {
		t.Fatal(code, err, stderr.String())
	}
	if len(want) < 10 || !reflect.DeepEqual(some.Events, want) {
		t.Errorf("%d events of %d, want %d", len(some.Events), len(all.Events), len(want))
	}
}
