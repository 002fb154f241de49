package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ashlar-mem/ashlar/snapshot"
)

// The scripts of the commands that read one file.
func TestReadingScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "reading"),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			testdata, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
			env.Setenv("TESTDATA", testdata)
			return err
		},
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
